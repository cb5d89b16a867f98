// What could follow the words of a command line: commands, options, and the names of what the service has.
import { ARCHIVE_FORMATS } from '../contract/files/files.ts'
import { GAME_IDS } from '../contract/games/games.ts'
import { SCOPES } from '../contract/scopes.ts'
import type { Client } from '../sdk/index.ts'
import { ALIASES, type AnyCommand, GLOBAL_OPTIONS, type Options, plainName } from './command.ts'
import { COMMANDS } from './command-list.ts'
import type { Context } from './context.ts'
import { serverIdOf, take } from './server-reference.ts'

export interface Suggestion {
  word: string
  help: string
}

/** Somebody waits at a terminal: names that do not come in this time are not offered. */
const PATIENCE_MS = 2000
const NAMES_MAX = 200

/** The last word is the one to complete; it may be empty. */
export async function suggest(context: Context, words: readonly string[]): Promise<Suggestion[]> {
  const typed = words.at(-1) ?? ''
  const found = await suggestAll(context, words.slice(0, -1), typed)
  // A control character in a name would break the line that carries it, or steer the terminal.
  return found.filter(({ word }) => word.startsWith(typed) && !/\p{Cc}/u.test(word))
}

async function suggestAll(context: Context, before: readonly string[], typed: string): Promise<Suggestion[]> {
  const { positionals, given, waiting } = read(GLOBAL_OPTIONS, before)
  const [name, word] = positionals
  const entry = name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!entry) {
    if (waiting !== undefined || name !== undefined) return []
    return typed.startsWith('-') ? optionsOf(GLOBAL_OPTIONS, given) : commandNames()
  }
  const { main, subcommands = {} } = await entry.load()
  const own = word === undefined ? undefined : (subcommands[word] ?? subcommands[ALIASES[word] ?? ''])
  const spec = own ?? main
  const more = own || word !== undefined ? [] : subcommandNames(subcommands)
  if (!spec) return typed.startsWith('-') ? optionsOf(GLOBAL_OPTIONS, given) : more
  const args = await suggestFor(context, spec, before, typed, own ? 2 : 1)
  return typed.startsWith('-') ? args : [...more, ...args]
}

const commandNames = () => Object.entries(COMMANDS).map(([word, { summary }]) => ({ word, help: summary }))
const subcommandNames = (all: Readonly<Record<string, AnyCommand>>) =>
  Object.entries(all).map(([word, { summary }]) => ({ word, help: summary }))

async function suggestFor(
  context: Context,
  spec: AnyCommand,
  before: readonly string[],
  typed: string,
  commandWords: number,
): Promise<Suggestion[]> {
  const options: Options = { ...GLOBAL_OPTIONS, ...spec.options }
  const { positionals, given, waiting } = read(options, before)
  const args = positionals.slice(commandWords)
  if (waiting !== undefined) return valuesOf(context, waiting, options[waiting]?.value)
  if (typed.startsWith('-')) return optionsOf(options, given)
  const argument = spec.args[Math.min(args.length, spec.args.length - 1)]
  if (argument === undefined || (args.length >= spec.args.length && !/\.\.\.$|\*$/.test(argument))) return []
  return namesOf(context, plainName(argument), args[0])
}

interface Read {
  positionals: string[]
  given: Set<string>
  /** The option that the next word is the value of. */
  waiting: string | undefined
}

function read(options: Options, words: readonly string[]): Read {
  const result: Read = { positionals: [], given: new Set(), waiting: undefined }
  for (const word of words) {
    if (result.waiting !== undefined) result.waiting = undefined
    else if (!word.startsWith('-') || word === '-') result.positionals.push(word)
    else {
      const name = nameOf(options, word)
      if (name === undefined) continue
      result.given.add(name)
      if (options[name]?.type === 'string' && !word.includes('=')) result.waiting = name
    }
  }
  return result
}

function nameOf(options: Options, word: string): string | undefined {
  const [long = ''] = word.slice(2).split('=')
  if (word.startsWith('--')) return Object.hasOwn(options, long) ? long : undefined
  return Object.keys(options).find((name) => options[name]?.short === word[1])
}

function optionsOf(options: Options, given: ReadonlySet<string>): Suggestion[] {
  return Object.entries(options)
    .filter(([name, { multiple }]) => multiple || !given.has(name))
    .map(([name, { help }]) => ({ word: `--${name}`, help }))
}

async function valuesOf(context: Context, option: string, value = ''): Promise<Suggestion[]> {
  if (value === 'SERVER') return namesOf(context, 'server', undefined)
  const known: Record<string, readonly string[]> = {
    game: GAME_IDS,
    template: GAME_IDS,
    scope: SCOPES,
    format: ARCHIVE_FORMATS,
  }
  const words = /^[a-z]+(\|[a-z]+)+$/.test(value) ? value.split('|') : (known[option] ?? [])
  return words.map((word) => ({ word, help: '' }))
}

/** What an argument can be named by; nothing where the service does not answer, or not in time. */
async function namesOf(context: Context, argument: string, server: string | undefined): Promise<Suggestion[]> {
  const list = Object.hasOwn(LISTS, argument) ? LISTS[argument] : undefined
  if (!list) return []
  try {
    const signal = AbortSignal.any([context.io.signal, AbortSignal.timeout(PATIENCE_MS)])
    return await list(context.client(), signal, server)
  } catch {
    return []
  }
}

type List = (client: Client, signal: AbortSignal, server: string | undefined) => Promise<Suggestion[]>
const LATEST: Suggestion = { word: 'latest', help: 'The newest' }

const listBackups: List = async (client, signal, server = '') => {
  const serverId = await serverIdOf(client, server, signal)
  const backups = await take(client.backups.all(serverId, { limit: 100 }, { signal }), NAMES_MAX)
  return [LATEST, ...backups.map(({ id, name }) => ({ word: name, help: id }))]
}

const LISTS: Readonly<Record<string, List>> = {
  async server(client, signal) {
    const servers = await take(client.servers.all({ limit: 100 }, { signal }), NAMES_MAX)
    return servers.map(({ id, name }) => ({ word: name, help: id }))
  },
  backup: listBackups,
  other: listBackups,
  async schedule(client, signal, server = '') {
    const serverId = await serverIdOf(client, server, signal)
    const data = await Array.fromAsync(client.backups.allSchedules(serverId, { limit: 100 }, { signal }))
    return [LATEST, ...data.map(({ id, name, cron }) => ({ word: name, help: `${id}  ${cron}` }))]
  },
}
