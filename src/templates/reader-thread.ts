// Reads templates of strangers in a thread of its own.
import { fail } from '../contract/errors.ts'
import type { TemplateMediaType } from '../contract/games/templates.ts'
import { moduleBeside } from '../kit/module-beside.ts'
import { createBoundedThread, TooExpensive } from './bounded-thread.ts'
import type { ReadOptions, ReadTemplate, TemplateFault } from './read.ts'

export interface ReaderOrder {
  text: string
  type: TemplateMediaType
  options: ReadOptions
}

export type ReaderAnswer = { read: ReadTemplate } | { faults: TemplateFault[] } | { error: string }

export interface TemplateReader {
  /** Throws `invalid_request` with every fault, and `rate_limited` where too many wait. */
  read(order: ReaderOrder): Promise<ReadTemplate>
}

export function createTemplateReader(): TemplateReader {
  const thread = createBoundedThread<ReaderOrder, ReaderAnswer>(moduleBeside(import.meta.url, 'reader-worker'))
  return {
    async read(order) {
      const answer = await thread.ask(order).catch((error: unknown) => {
        if (error instanceof TooExpensive) return { faults: [{ path: '', message: error.message, line: 1 }] }
        throw error
      })
      if ('read' in answer) return answer.read
      if ('error' in answer) throw new Error(answer.error)
      throw invalidTemplate(answer.faults)
    },
  }
}

function invalidTemplate(faults: readonly TemplateFault[]) {
  const errors = faults.map(({ path, message, line }) => ({ path, message: `${message} (line ${line})` }))
  const names = errors.map(({ path, message }) => (path ? `${path} ${message}` : message))
  return fail('invalid_request', { detail: `The template is not valid: ${names.slice(0, 5).join('; ')}.`, errors })
}
