// What a command is: a description to parse and explain itself by, and a function that does the work.
import { parseArgs } from 'node:util'
import type { Context } from './context.ts'
import { UsageError } from './exit-codes.ts'
import { nearest } from './nearest.ts'

export interface Option {
  type: 'string' | 'boolean'
  /** May be given more than once. */
  multiple?: boolean
  short?: string
  /** Stands for the value in the help. */
  value?: string
  help: string
}
export type Options = Readonly<Record<string, Option>>

type Value<O extends Option> = O['type'] extends 'boolean' ? boolean : O['multiple'] extends true ? string[] : string
export type ValuesOf<O extends Options> = { [K in keyof O]?: Value<O[K]> }

/** `name`, `name?` for one that may be left out, `name...` for one or more, `name*` for any number. */
type ArgumentsOf<A extends readonly string[]> = {
  [K in A[number] as K extends `${string}?` | `${string}...` | `${string}*` ? never : K]: string
} & { [K in A[number] as K extends `${infer N}?` ? N : never]?: string } & {
  [K in A[number] as K extends `${infer N}...` | `${infer N}*` ? N : never]: string[]
}

/** What an argument is called, without the sign of how often it may come. */
export const plainName = (argument: string) => argument.replace(/\?$|\.\.\.$|\*$/, '')

export interface Command<O extends Options = Options, A extends readonly string[] = readonly string[]> {
  summary: string
  description?: string
  args: A
  options: O
  /** Each works as pasted, with names of your own. */
  examples: readonly string[]
  run(context: Context, options: ValuesOf<O>, args: ArgumentsOf<A>): Promise<number | undefined>
}

/** A command of any shape, as the table holds it. `parse` has checked what it is given. */
export interface AnyCommand extends Omit<Command, 'run'> {
  // biome-ignore lint/suspicious/noExplicitAny: each command has its own options and arguments
  run(context: Context, options: any, args: any): Promise<number | undefined>
}

/** A word of the command line: a command of its own, a family of commands, or both. */
export interface Family {
  main?: AnyCommand
  subcommands?: Readonly<Record<string, AnyCommand>>
}

/** Other names of subcommands, the same in every family that has them. */
export const ALIASES: Readonly<Record<string, string>> = { list: 'ls', delete: 'rm', remove: 'rm' }

export const command = <const O extends Options, const A extends readonly string[]>(spec: Command<O, A>) => spec

export const GLOBAL_OPTIONS = {
  url: { type: 'string', value: 'URL', help: 'The service; GAMEKEEPER_URL, else http://127.0.0.1:8080' },
  'token-file': { type: 'string', value: 'FILE', help: 'A file with the token; else GAMEKEEPER_TOKEN' },
  json: { type: 'boolean', help: 'Print JSON for programs' },
  'no-color': { type: 'boolean', help: 'No colours, like NO_COLOR' },
  help: { type: 'boolean', short: 'h', help: 'Show this help' },
} as const satisfies Options

export interface Parsed {
  globals: ValuesOf<typeof GLOBAL_OPTIONS>
  options: Record<string, string | boolean | string[] | undefined>
  args: Record<string, string | string[] | undefined>
}

/** How a command is called, without its options. */
export function usageOf(path: string, spec: AnyCommand): string {
  const args = spec.args.map((name: string) => {
    const plain = plainName(name).toUpperCase()
    if (name.endsWith('*')) return `[${plain}...]`
    return name.endsWith('?') ? `[${plain}]` : name.endsWith('...') ? `${plain}...` : plain
  })
  return ['gamekeeper', path, ...args, '[options]'].join(' ')
}

export function parse(path: string, spec: AnyCommand, argv: readonly string[]): Parsed {
  const known: Options = { ...GLOBAL_OPTIONS, ...spec.options }
  const { values, positionals, tokens } = parseArgs({
    args: [...argv],
    options: toParseOptions(known),
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  for (const token of tokens) if (token.kind === 'option') checkOption(known, token)
  const globals: Record<string, unknown> = {}
  const options: Parsed['options'] = {}
  for (const [name, value] of Object.entries(values)) {
    if (name in GLOBAL_OPTIONS) globals[name] = value
    else options[name] = value as string | boolean | string[]
  }
  if (globals.help) return { globals, options, args: {} }
  return { globals, options, args: readArguments(spec.args, positionals, `Usage: ${usageOf(path, spec)}`) }
}

function toParseOptions(options: Options) {
  const entries = Object.entries(options).map(([name, { type, short, multiple = false }]) => {
    return [name, { type, multiple, ...(short ? { short } : {}) }] as const
  })
  return Object.fromEntries(entries)
}

function checkOption(known: Options, token: { name: string; rawName: string; value?: string | undefined }): void {
  const spec = known[token.name]
  if (!spec) throw unknownOption(token.rawName, token.name, Object.keys(known))
  if (spec.type === 'string' && token.value === undefined) throw new UsageError(`${token.rawName} needs a value.`)
  if (spec.type === 'boolean' && token.value !== undefined) throw new UsageError(`${token.rawName} takes no value.`)
}

/** The value is never repeated: it may be a secret that was meant for another option. */
function unknownOption(rawName: string, name: string, known: readonly string[]): UsageError {
  if (name === 'token') {
    return new UsageError(
      'A token is not accepted on the command line, where everybody on this machine can see it.',
      'Put it into a file and use --token-file FILE, or set GAMEKEEPER_TOKEN.',
    )
  }
  const close = nearest(name, known)
  return new UsageError(`There is no option ${rawName}.`, close ? `Did you mean --${close}?` : undefined)
}

function readArguments(names: readonly string[], given: readonly string[], usage: string): Parsed['args'] {
  const rest = [...given]
  const args: Parsed['args'] = {}
  for (const name of names) {
    const plain = plainName(name)
    if (name.endsWith('...') || name.endsWith('*')) args[plain] = rest.splice(0)
    else args[plain] = rest.shift()
    const empty = args[plain] === undefined || args[plain]?.length === 0
    if (empty && !/[?*]$/.test(name)) throw new UsageError(`${plain.toUpperCase()} is missing.`, usage)
  }
  if (rest.length > 0) throw new UsageError(`"${rest[0]}" is an extra argument.`, usage)
  return args
}
