// The one place of the command line that reads the environment.
import { resolve } from 'node:path'

export interface Environment {
  url: string
  token: string | null
  dataDir: string
  color: boolean
  /** The command that edits a file, as a shell reads it. */
  editor: string
  /** All of it, for `serve`, whose settings are read by the service. */
  all: NodeJS.ProcessEnv
}

const DEFAULT_URL = 'http://127.0.0.1:8080'

export function readEnvironment(env: NodeJS.ProcessEnv, isTerminal: boolean): Environment {
  return {
    url: env.GAMEKEEPER_URL || DEFAULT_URL,
    token: env.GAMEKEEPER_TOKEN?.trim() || null,
    dataDir: resolve(env.GAMEKEEPER_DATA_DIR || 'data'),
    // https://no-color.org: any value but the empty one.
    color: isTerminal && !env.NO_COLOR && env.TERM !== 'dumb',
    editor: env.VISUAL || env.EDITOR || 'vi',
    all: env,
  }
}
