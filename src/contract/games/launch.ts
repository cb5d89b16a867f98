// What a runtime needs to run a game: a template with its variables filled in. Nothing in it is a line for a shell, but for
// `shellLine`, which only a container may run.
import type { ConfigFormat, Template } from './template-format.ts'

/**
 * Found in a line of the console wherever it stands, or from its begin on with `^` first, up to its end with `$` last; `*` is
 * any text, `{name}` any text without spaces that is handed on.
 * No regular expressions: templates come from strangers, and one expression can take for ever on one line.
 */
export type LinePattern = string

export type LaunchPort = { name: string; port: number; protocol: 'tcp' | 'udp' }

/** One rung of the ladder by which a game is stopped. SIGKILL comes after the last one and is not listed. */
export type StopStep = { timeoutSeconds: number; message: string | null } & (
  | { command: string }
  | { signal: 'SIGINT' | 'SIGTERM' | 'SIGQUIT' }
)

/** A console of the game on the loopback. */
export interface RemoteAccess {
  via: 'rcon' | 'management'
  port: number
  secret: string
}

/** How the world is held still for a backup: what is sent, what the game says when it is so, and what lets it go on. */
export interface Quiesce {
  before: readonly string[]
  /** Sent each second until the game has said so, where it has to be asked. */
  poll?: string | null
  /** One of them is enough. */
  isStill: LinePattern | readonly LinePattern[] | null
  timeoutSeconds: number
  after: readonly string[]
  /** Where the commands go; null: to the console. */
  remote?: RemoteAccess | null
}

export interface LaunchSetting {
  key: readonly string[]
  value: string | number | boolean
  /** Set only where the value that is there is this one, or matches. */
  ifEquals?: string | number | boolean
  ifMatches?: string
}

/** Filled in before each start; one that is missing is made, unless it is plain text. */
export interface LaunchConfigFile {
  path: string
  format: ConfigFormat
  settings: readonly LaunchSetting[]
}

/** Looked for before a start, when the config files are filled in. */
export type LaunchRequirement = NonNullable<Template['requires']>[number]

/** What a container needs beyond what a process does. */
export interface LaunchContainer {
  image: string
  /** Where it sees the server's files. */
  directory: string
  /** Kept; all others are dropped. */
  capabilities: readonly string[]
  /** An install script, run by `entrypoint` as root inside; null: a game. */
  installer: { entrypoint: string; script: string } | null
}

/** A step of an installation, with its values filled in. */
export type LaunchInstallStep =
  | { do: 'download'; url: string; sha256: string | null; path: string }
  | { do: 'unpack'; path: string; directory: string }
  | { do: 'write'; path: string; text: string }
  | { do: 'run'; args: readonly [string, ...string[]] }
  /** For a container only. */
  | { do: 'script'; image: string; entrypoint: string; text: string }

export interface Launch {
  templateId: string
  /** The program and its arguments. A program without a slash is looked for in the system's usual directories. */
  argv: readonly [string, ...string[]]
  shellLine: string | null
  /** All of the environment, but for HOME, PATH, TERM and LANG, which the runtime sets. */
  environment: Readonly<Record<string, string>>
  /** Below the server's files, beginning with a slash. */
  workingDirectory: string
  /** A line with one of these says that players can join; with none, a game runs as soon as it has started. */
  ready: readonly LinePattern[]
  stop: readonly StopStep[]
  /** Lines by which a game says that it was told to stop from inside, so that its end is no crash. */
  stopsByItself: readonly LinePattern[]
  /** `{player}` in a pattern is the name. */
  joins: readonly LinePattern[]
  leaves: readonly LinePattern[]
  ports: readonly LaunchPort[]
  /** The game's type in gamedig, and the port of `ports` that is asked. */
  query: { type: string; port: string } | null
  quiesce: Quiesce | null
  /** null: a process of the machine. */
  container: LaunchContainer | null
  configFiles: readonly LaunchConfigFile[]
  requires: readonly LaunchRequirement[]
}
