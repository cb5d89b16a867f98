// `gamekeeper dns check [--repair]`
import type { DnsFinding } from '../../sdk/index.ts'
import { command, type Family } from '../command.ts'
import { EXIT } from '../exit-codes.ts'
import { type Column, formatTable } from '../text.ts'

const check = command({
  summary: 'Compare every zone with what it should contain',
  description: 'The exit code is 1 if something is wrong and was not repaired. Needs a token for all servers.',
  args: [],
  options: { repair: { type: 'boolean', help: 'Repair our own records; others are never touched' } },
  examples: ['gamekeeper dns check', 'gamekeeper dns check --repair --json'],
  async run(context, options) {
    const body = { repair: options.repair ?? false }
    const result = await context.client().dns.check(body, { signal: context.io.signal })
    const { zones, subdomains, findings } = result
    if (context.json) context.print(result)
    else if (findings.length > 0) context.say(formatTable(findings, COLUMNS, context.paint))
    const looked = `${zones} ${zones === 1 ? 'zone' : 'zones'}, ${subdomains} ${subdomains === 1 ? 'subdomain' : 'subdomains'}`
    context.note(findings.length === 0 ? `All is well: ${looked}.` : `Looked at ${looked}.`)
    return findings.every(({ repaired }) => repaired) ? EXIT.ok : EXIT.failed
  },
})

const COLUMNS: Column<DnsFinding>[] = [
  { title: 'NAME', cell: ({ hostname }) => hostname, style: () => 'cyan' },
  { title: 'FOUND', cell: ({ kind }) => kind, style: ({ repaired }) => (repaired ? 'green' : 'red') },
  { title: 'REPAIRED', cell: ({ repaired }) => (repaired ? 'yes' : 'no') },
  { title: 'DETAIL', cell: ({ detail }) => detail },
]

export const dns: Family = { subcommands: { check } }
