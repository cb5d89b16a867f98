// What a command is given to work with: where to write, whom to ask, and when to stop.
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'
import { type Client, createClient } from '../sdk/index.ts'
import type { Environment } from './environment.ts'
import { NoToken, UsageError } from './exit-codes.ts'
import { createPaint, type Paint } from './text.ts'
import { VERSION } from './version.ts'

/** The process as a command sees it. */
export interface Io {
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean; columns?: number }
  stderr: Writable & { isTTY?: boolean; columns?: number }
  env: NodeJS.ProcessEnv
  /** Aborted when the user interrupts. */
  signal: AbortSignal
}

export interface Context {
  io: Io
  environment: Environment
  json: boolean
  url: string
  paint: Paint
  now(): number
  /** The client of the service. Throws when there is no token. */
  client(): Client
  /** The token to use, or null. Throws when the file cannot be read. */
  token(): string | null
  tokenFile: string | null
  /** For people, on standard output. Nothing in JSON mode. */
  say(text: string): void
  /** For people, on standard error, so that what is piped on stays clean. Nothing in JSON mode. */
  note(text: string): void
  /** One JSON document. */
  print(value: unknown): void
  /** One line of a stream of JSON documents. */
  printLine(value: unknown): void
  /** For what must not get lost: on standard output, and rejects where it could not be handed on. */
  hand(text: string): Promise<void>
  /** Whether there is somebody to ask. */
  canAsk: boolean
  ask(question: string): Promise<string>
}

export interface GlobalValues {
  url?: string
  'token-file'?: string
  json?: boolean
  'no-color'?: boolean
}

export function createContext(io: Io, environment: Environment, globals: GlobalValues): Context {
  const json = globals.json ?? false
  const url = globals.url ?? environment.url
  const tokenFile = globals['token-file'] ?? null
  const token = () => {
    if (tokenFile !== null) return readTokenFile(tokenFile)
    return environment.token === null ? null : checkToken(environment.token, 'GAMEKEEPER_TOKEN')
  }
  return {
    io,
    environment,
    json,
    url,
    paint: createPaint(environment.color && !globals['no-color'] && !json),
    now: () => Date.now(),
    token,
    tokenFile,
    client() {
      const value = token()
      if (value === null) {
        throw new NoToken('No token. Set GAMEKEEPER_TOKEN, or pass a file that contains it with --token-file.')
      }
      return connect(url, value)
    },
    say: (text) => void (json || io.stdout.write(`${text}\n`)),
    note: (text) => void (json || io.stderr.write(`${text}\n`)),
    print: (value) => void io.stdout.write(`${toJson(value, 2)}\n`),
    printLine: (value) => void io.stdout.write(`${toJson(value)}\n`),
    hand: (text) =>
      new Promise((resolve, reject) => {
        io.stdout.write(text, (error) => (error ? reject(error) : resolve()))
      }),
    canAsk: Boolean(io.stdin.isTTY && io.stderr.isTTY) && !json,
    async ask(question) {
      const lines = createInterface({ input: io.stdin, output: io.stderr })
      try {
        return await lines.question(question, { signal: io.signal })
      } finally {
        lines.close()
      }
    },
  }
}

export function connect(url: string, token: string | null): Client {
  try {
    const headers = { 'user-agent': `gamekeeper-cli/${VERSION}` }
    return createClient({ baseUrl: url, token, client: 'cli', headers })
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError(`"${url}" is not a URL such as http://127.0.0.1:8080.`)
    throw error
  }
}

function readTokenFile(path: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new NoToken(`The token file ${path} ${code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`}.`)
  }
  return checkToken(text, `The token file ${path}`)
}

/** What cannot be sent in a header is no token. */
function checkToken(text: string, where: string): string {
  if (!/^[\x21-\x7e]+$/.test(text)) throw new NoToken(`${where} does not contain a token.`)
  return text
}

/** Control characters that JSON leaves as they are could still steer a terminal. */
function toJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent)
  return text.replace(/[\u007f-\u009f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
