import { ALIASES, type AnyCommand, type Family, GLOBAL_OPTIONS, type Option, type Options, usageOf } from './command.ts'
import { COMMANDS } from './command-list.ts'
import { VERSION } from './version.ts'

export function overview(): string {
  const commands = Object.entries(COMMANDS).map(([name, { summary }]) => [name, summary] as const)
  return [
    `gamekeeper ${VERSION}: keeps game servers, their files, backups, subdomains and history`,
    `\nUsage: gamekeeper COMMAND [options]`,
    `\nCommands:\n${columns(commands)}`,
    `\nOptions of every command:\n${optionLines(GLOBAL_OPTIONS)}`,
    `\nExamples:\n${exampleLines(['gamekeeper serve', 'gamekeeper server create Castle --game minecraft-java', 'gamekeeper activity Castle --follow'])}`,
    '\nSee "gamekeeper COMMAND --help" for details. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not allowed, 4 not found,\n5 conflict, 6 unreachable, 7 too many requests, 130 interrupted.',
  ].join('\n')
}

export function helpOf(path: string, spec: AnyCommand, subcommands: Family['subcommands'] = {}): string {
  const more = Object.keys(subcommands).length > 0 ? `\n\n${familyLines(path, subcommands)}` : ''
  const own = Object.keys(spec.options).length > 0 ? `\nOptions:\n${optionLines(spec.options)}\n` : ''
  return [
    spec.summary,
    ...(spec.description ? [`\n${spec.description}`] : []),
    `\nUsage: ${usageOf(path, spec)}${more}`,
    `${own}\nOptions of every command:\n${optionLines(GLOBAL_OPTIONS)}`,
    `\nExamples:\n${exampleLines(spec.examples)}`,
  ].join('\n')
}

export function helpOfFamily(name: string, subcommands: NonNullable<Family['subcommands']>): string {
  const examples = Object.values(subcommands).flatMap((spec) => spec.examples.slice(0, 1))
  return [
    COMMANDS[name]?.summary ?? name,
    `\nUsage: gamekeeper ${name} ${Object.keys(subcommands).join('|')} [options]`,
    `\n${familyLines(name, subcommands)}`,
    `\nExamples:\n${exampleLines(examples)}`,
  ].join('\n')
}

function familyLines(path: string, subcommands: NonNullable<Family['subcommands']>): string {
  const rows = Object.entries(subcommands).map(([name, { summary }]) => {
    const other = Object.keys(ALIASES).find((alias) => ALIASES[alias] === name)
    return [`${path} ${name}`, other ? `${summary} (also "${other}")` : summary] as const
  })
  return `Commands:\n${columns(rows)}`
}

function optionLines(options: Options): string {
  return columns(Object.entries(options).map(([name, option]) => [optionName(name, option), option.help]))
}

function optionName(name: string, { short, value }: Option): string {
  return `${short ? `-${short}, ` : ''}--${name}${value ? ` ${value}` : ''}`
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join('\n')
}

const exampleLines = (examples: readonly string[]) => examples.map((example) => `  ${example}`).join('\n')
