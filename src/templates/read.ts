// From the text of a template or an egg to a template that has been checked, with a report. Slow for a text that is made to
// be: the service does it in a thread (reader-thread.ts), the command line where it is.
import { TEMPLATE_MAX_BYTES } from '../contract/fixed-limits.ts'
import type { Template } from '../contract/games/template-format.ts'
import type { ReportEntry, TemplateMediaType } from '../contract/games/templates.ts'
import { templateFaults } from './check.ts'
import { readDocument, type TemplateFault, UnreadableTemplate } from './document.ts'
import { eggVersionOf, importEgg } from './eggs/egg.ts'

export interface ReadOptions {
  /** Instead of the one in the text, or of the name of an egg. */
  id?: string | undefined
  /** Ids that an egg is not given by its name. */
  takenIds?: readonly string[]
}

export interface ReadTemplate {
  template: Template
  report: ReportEntry[]
  /** Lines of the report's entries. */
  lines: number[]
}

/** Throws UnreadableTemplate, with every fault and its line. */
export function readTemplate(text: string, type: TemplateMediaType, options: ReadOptions = {}): ReadTemplate {
  if (Buffer.byteLength(text) > TEMPLATE_MAX_BYTES)
    throw new UnreadableTemplate([{ path: '', message: 'is larger than 1 MiB', line: 1 }])
  const { value, repeated, lineOf } = readDocument(text, type)
  const isEgg = eggVersionOf(value) !== null
  if (!isEgg && repeated.length > 0) throw new UnreadableTemplate(repeated)
  const { template, report } = isEgg ? importEgg(value as Record<string, unknown>, options) : asTemplate(value, options)
  const faults = templateFaults(template)
  if (faults.length > 0) throw new UnreadableTemplate(faults.map((fault) => placed(fault, isEgg, lineOf)))
  report.push(...repeated.map(({ path, message }) => ({ path, level: 'dropped' as const, message })))
  return { template, report, lines: report.map(({ path }) => lineOf(path)) }
}

/** What an egg became has no lines of its own. */
function placed(fault: { path: string; message: string }, isEgg: boolean, lineOf: (path: string) => number) {
  if (!isEgg) return { ...fault, line: lineOf(fault.path) }
  return { path: '', message: `cannot become a template: ${fault.path} ${fault.message}`, line: 1 }
}

function asTemplate(value: unknown, { id }: ReadOptions): { template: Template; report: ReportEntry[] } {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UnreadableTemplate([{ path: '', message: 'must be an object: a template or an egg', line: 1 }])
  if (!('format' in value))
    throw new UnreadableTemplate([
      { path: '/format', message: 'is required: 1 for a template. An egg has its version in meta.version', line: 1 },
    ])
  const report: ReportEntry[] = [{ path: '', level: 'carried', message: 'as it is' }]
  const template = { ...value } as unknown as Template
  if (id !== undefined && id !== template.id) {
    report.push({ path: '/id', level: 'changed', message: `is ${id}, as asked for` })
    template.id = id
  }
  if (template.isTested === true) {
    report.push({ path: '/isTested', level: 'changed', message: 'is false: our tests start only what we ship' })
    template.isTested = false
  }
  return { template, report }
}

export const mediaTypeOf = (text: string): TemplateMediaType =>
  /^[\s\ufeff]*[{[]/.test(text) ? 'application/json' : 'application/yaml'

export { type TemplateFault, UnreadableTemplate }
