// From the words of the command line to a command, and from whatever comes of it to a message and an exit code. Nothing
// else in the command line does the latter.
import { ApiError, JobError, TransportError } from '../sdk/index.ts'
import { ALIASES, type AnyCommand, type Family, parse } from './command.ts'
import { COMMANDS } from './command-list.ts'
import { createContext, type Io } from './context.ts'
import { readEnvironment } from './environment.ts'
import { CommandError, EXIT, exitCodeOf, NoToken, UsageError } from './exit-codes.ts'
import { helpOf, helpOfFamily, overview } from './help.ts'
import { nearest } from './nearest.ts'
import { createPaint, safe } from './text.ts'
import { VERSION } from './version.ts'

export async function runCli(argv: readonly string[], io: Io): Promise<number> {
  try {
    return await dispatch(argv, io)
  } catch (error) {
    if (io.signal.aborted) return EXIT.interrupted
    report(error, argv.includes('--json'), io)
    return exitCodeOf(error)
  }
}

interface Found {
  path: string
  family: Family
  spec: AnyCommand
  rest: readonly string[]
}

async function dispatch(argv: readonly string[], io: Io): Promise<number> {
  const [first] = argv
  if (first === undefined || first === '--help' || first === '-h' || first === 'help') return show(io, overview())
  if (first === '--version' || first === '-v') return show(io, VERSION)
  const found = await find(argv)
  if (typeof found === 'string') return show(io, found)
  const { globals, options, args } = parse(found.path, found.spec, found.rest)
  if (globals.help)
    return show(io, helpOf(found.path, found.spec, found.spec === found.family.main ? found.family.subcommands : {}))
  const environment = readEnvironment(io.env, io.stdout.isTTY ?? false)
  return (await found.spec.run(createContext(io, environment, globals), options, args)) ?? EXIT.ok
}

/** The command that is meant, or the help of a family when that is what was asked for. */
async function find(argv: readonly string[]): Promise<Found | string> {
  const at = commandIndex(argv)
  const name = argv[at] ?? ''
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!entry) throw unknownWord(name, Object.keys(COMMANDS), '')
  const family = await entry.load()
  const { main, subcommands = {} } = family
  const before = argv.slice(0, at)
  const word = argv[at + 1]
  const subcommand = word === undefined ? undefined : subcommandFor(subcommands, word)
  if (subcommand !== undefined) {
    const spec = subcommands[subcommand] as AnyCommand
    return { path: `${name} ${subcommand}`, family, spec, rest: [...before, ...argv.slice(at + 2)] }
  }
  if (main) return { path: name, family, spec: main, rest: [...before, ...argv.slice(at + 1)] }
  if (word === undefined || word === '--help' || word === '-h') {
    if (word !== undefined) return helpOfFamily(name, subcommands)
    throw new UsageError(
      `"${name}" needs ${Object.keys(subcommands).length > 1 ? 'one of ' : ''}${Object.keys(subcommands).join(', ')}.`,
      `Try "gamekeeper ${name} --help".`,
    )
  }
  throw unknownWord(word, Object.keys(subcommands), `${name} `)
}

/** Its own name, or the other name that it has in every family. */
function subcommandFor(subcommands: NonNullable<Family['subcommands']>, word: string): string | undefined {
  if (Object.hasOwn(subcommands, word)) return word
  const name = Object.hasOwn(ALIASES, word) ? ALIASES[word] : undefined
  return name !== undefined && Object.hasOwn(subcommands, name) ? name : undefined
}

/** The options of every command may stand before it. */
function commandIndex(argv: readonly string[]): number {
  let index = 0
  while (argv[index]?.startsWith('-')) index += argv[index] === '--url' || argv[index] === '--token-file' ? 2 : 1
  if (index >= argv.length) throw new UsageError('Which command?', 'Try "gamekeeper --help".')
  return index
}

function unknownWord(word: string, known: readonly string[], prefix: string): UsageError {
  const close = nearest(word, known)
  const hint = close ? `Did you mean "gamekeeper ${prefix}${close}"?` : `Try "gamekeeper ${prefix}--help".`
  return new UsageError(`There is no command "${prefix}${word}".`, hint)
}

function show(io: Io, text: string): number {
  io.stdout.write(`${text}\n`)
  return EXIT.ok
}

function report(error: unknown, json: boolean, io: Io): void {
  if (json) return void io.stderr.write(`${JSON.stringify({ error: describe(error) })}\n`)
  const paint = createPaint(readEnvironment(io.env, io.stderr.isTTY ?? false).color)
  const { detail, hint, fields = [], requestId } = describe(error)
  const lines = [
    `${paint('red', 'error:')} ${isOurs(error) ? detail.split('\n').map(safe).join('\n') : safe(detail)}`,
    ...fields
      .map(({ path, message }) => `${path} ${message}`)
      .filter((fault) => !detail.includes(fault))
      .map((fault) => `  ${safe(fault)}`),
    ...(hint ? [safe(hint)] : []),
    ...(requestId ? [paint('dim', `request ${requestId}`)] : []),
  ]
  io.stderr.write(`${lines.join('\n')}\n`)
}

/** Only what was written here may have several lines: in the words of others a line break could pass for a line of ours. */
const isOurs = (error: unknown) => !(error instanceof ApiError || error instanceof JobError)

const HINTS: Readonly<Record<string, string>> = {
  unauthenticated:
    'Check GAMEKEEPER_TOKEN or --token-file. If the admin token is lost, see "gamekeeper token rescue --help".',
}

/** Codes of TLS, by which the service is there and something else is wrong. */
function hintFor({ cause }: TransportError): string {
  const { code } = ((cause as Error | undefined)?.cause ?? {}) as { code?: string }
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') return 'It does not speak TLS there. Try the address with http://.'
  if (code !== undefined && UNTRUSTED.test(code))
    return 'Its certificate is not trusted here. Set NODE_EXTRA_CA_CERTS to the certificate of whoever signed it.'
  return 'Is the service running, and is the address right (http or https)? Try "gamekeeper doctor".'
}

const UNTRUSTED = /SELF_SIGNED_CERT|^UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)/

interface Description {
  code: string
  detail: string
  hint?: string
  fields?: readonly { path: string; message: string }[]
  requestId?: string
  status?: number
}

function describe(error: unknown): Description {
  if (error instanceof ApiError) {
    const { code, detail, status, errors: fields, requestId, attempts } = error
    const hint = attempts > 1 ? 'An earlier attempt got no answer; it may have succeeded.' : HINTS[code]
    return { code, detail, status, fields, ...(requestId ? { requestId } : {}), ...(hint ? { hint } : {}) }
  }
  if (error instanceof UsageError)
    return { code: 'usage', detail: error.message, ...(error.hint ? { hint: error.hint } : {}) }
  if (error instanceof TransportError) {
    return {
      code: `unreachable_${error.fault}`,
      detail: error.message,
      hint: hintFor(error),
    }
  }
  if (error instanceof NoToken) return { code: 'unauthenticated', detail: error.message }
  if (error instanceof JobError) return { code: error.job.error?.code ?? error.job.status, detail: error.message }
  if (error instanceof CommandError) return { code: error.code, detail: error.message }
  return { code: 'failed', detail: error instanceof Error ? (error.stack ?? error.message) : String(error) }
}
