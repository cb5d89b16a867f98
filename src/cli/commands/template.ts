// `gamekeeper template ls|show|check|import|rm`
import { readFileSync } from 'node:fs'
import type { ImportedTemplate, ReportEntry, StoredTemplate, TemplateSummary } from '../../sdk/index.ts'
import { mediaTypeOf, readTemplate, UnreadableTemplate } from '../../templates/read.ts'
import { command, type Family } from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../exit-codes.ts'
import { type Column, formatFields, formatTable, safe } from '../text.ts'

const ls = command({
  summary: 'List what can be run',
  args: [],
  options: {},
  examples: ['gamekeeper template ls', 'gamekeeper template ls --json'],
  async run(context) {
    const client = context.client()
    const templates = await Array.fromAsync(client.templates.all({ limit: 100 }, { signal: context.io.signal }))
    if (context.json) context.print(templates)
    else context.say(formatTable(templates, COLUMNS, context.paint))
    return undefined
  },
})

const show = command({
  summary: 'Show a template and its variables',
  args: ['template'],
  options: {},
  examples: ['gamekeeper template show openttd', 'gamekeeper template show openttd --json'],
  async run(context, _options, { template: id }) {
    const template = await context.client().templates.read(id, { signal: context.io.signal })
    if (context.json) context.print(template)
    else context.say(describe(context, template))
    return undefined
  },
})

const check = command({
  summary: 'Check files that contain a template or an egg, without the service',
  description: 'Names every fault with its line. For an egg it shows what an import would change or drop.',
  args: ['files...'],
  options: { verbose: { type: 'boolean', help: 'Show also what is carried over' } },
  examples: ['gamekeeper template check my-game.yaml'],
  async run(context, { verbose = false }, { files }) {
    const checked = files.map((file) => ({ file, ...checkFile(file) }))
    if (context.json) context.print(checked)
    for (const { file, faults, report } of checked) {
      for (const { line, path, message } of faults)
        context.say(`${safe(file)}:${line}: ${safe(`${path} ${message}`.trim())}`)
      sayReport(context, file, report, verbose)
      if (faults.length === 0) context.say(`${safe(file)} is a template.`)
    }
    return checked.every(({ faults }) => faults.length === 0) ? EXIT.ok : EXIT.failed
  },
})

const imports = command({
  summary: 'Add templates, or import Pterodactyl and Pelican eggs',
  description: 'Shows what was changed or dropped.',
  args: ['files...'],
  options: {
    id: { type: 'string', value: 'ID', help: 'The id of the template, for one file' },
    replace: { type: 'boolean', help: 'Replace a template of your own with the same id' },
    verbose: { type: 'boolean', help: 'Show also what is carried over' },
  },
  examples: ['gamekeeper template import my-game.yaml', 'gamekeeper template import egg-paper.json --id my-paper'],
  async run(context, { id, replace, verbose = false }, { files }) {
    if (id !== undefined && files.length > 1) throw new CommandError('--id goes with one file.', EXIT.usage)
    const client = context.client()
    const imported: ImportedTemplate[] = []
    for (const file of files) {
      const text = readText(file)
      const result = await client.templates.create(text, {
        type: mediaTypeOf(text),
        signal: context.io.signal,
        ...(id === undefined ? {} : { id }),
        ...(replace === undefined ? {} : { replace }),
      })
      imported.push(result)
      sayReport(context, file, result.report, verbose)
      context.say(`Added ${result.template.id} (${safe(result.template.name)}).`)
    }
    if (context.json) context.print(imported)
    return undefined
  },
})

const rm = command({
  summary: 'Delete templates of your own that no server uses',
  args: ['templates...'],
  options: {},
  examples: ['gamekeeper template rm my-game'],
  async run(context, _options, { templates }) {
    const client = context.client()
    for (const id of templates) {
      await client.templates.delete(id, { signal: context.io.signal })
      context.say(`Deleted ${safe(id)}.`)
    }
    if (context.json) context.print({ deleted: templates })
    return undefined
  },
})

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new CommandError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}

function checkFile(file: string) {
  const text = readText(file)
  try {
    const { report, lines } = readTemplate(text, mediaTypeOf(text))
    return { faults: [], report: report.map((entry, index) => ({ ...entry, line: lines[index] ?? 1 })) }
  } catch (error) {
    if (error instanceof UnreadableTemplate) return { faults: error.faults, report: [] }
    throw error
  }
}

function sayReport(
  context: Context,
  file: string,
  report: readonly (ReportEntry & { line?: number })[],
  isAll: boolean,
) {
  const { paint } = context
  for (const { path, level, message, line } of report) {
    if (level === 'carried' && !isAll) continue
    const place = line === undefined ? safe(file) : `${safe(file)}:${line}`
    const painted = paint(level === 'dropped' ? 'yellow' : 'dim', level)
    context.say(`${place}: ${painted} ${safe(`${path} ${message}`)}`)
  }
}

function describe({ paint }: Context, template: StoredTemplate): string {
  const { variables = [] } = template
  const fields = formatFields(
    {
      Name: template.name,
      Id: template.id,
      Source: template.source,
      Tested: template.isTested ? 'by us, with the real game' : 'not by us',
      Runs: template.runtimes.join(', '),
      Port: String(template.defaultPort ?? '-'),
      Description: template.description ?? '-',
    },
    paint,
  )
  if (variables.length === 0) return fields
  return `${fields}\n\n${formatTable(variables, VARIABLE_COLUMNS, paint)}`
}

const COLUMNS: Column<TemplateSummary>[] = [
  { title: 'ID', cell: ({ id }) => id, style: () => 'cyan' },
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'SOURCE', cell: ({ source }) => source },
  { title: 'TESTED', cell: ({ isTested }) => (isTested ? 'by us' : 'not by us') },
  { title: 'RUNS', cell: ({ runtimes }) => runtimes.join(',') },
]

type Variable = NonNullable<StoredTemplate['variables']>[number]
const VARIABLE_COLUMNS: Column<Variable>[] = [
  { title: 'VARIABLE', cell: ({ name }) => name, style: () => 'cyan' },
  { title: 'TYPE', cell: ({ type }) => type },
  { title: 'DEFAULT', cell: (variable) => String(variable.default ?? '-') },
  { title: 'REQUIRED', cell: ({ isRequired = false }) => (isRequired ? 'yes' : 'no') },
  { title: 'TITLE', cell: ({ title }) => title ?? '-' },
]

export const template: Family = { subcommands: { ls, show, check, import: imports, rm } }
