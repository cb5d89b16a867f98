// Fills in the config files of servers, which are strangers' texts like any other: small ones where it is asked, larger ones in
// a thread.
import type { ConfigFormat } from '../../contract/games/template-format.ts'
import { moduleBeside } from '../../kit/module-beside.ts'
import { createBoundedThread, TooExpensive } from '../bounded-thread.ts'
import { ConfigFault, type ConfigSetting, fillConfig } from './fill.ts'

/** Text times settings: what takes no more than some milliseconds in the slowest format. */
const INLINE_MAX = 64 * 1024

export interface FillOrder {
  format: ConfigFormat
  text: string
  settings: readonly ConfigSetting[]
}

export type FillAnswer = { text: string } | { fault: string } | { error: string }

export interface ConfigFiller {
  /** Throws ConfigFault where the text is not what its format says, or takes too long. */
  fill(order: FillOrder): Promise<string>
}

export function createConfigFiller(): ConfigFiller {
  const thread = createBoundedThread<FillOrder, FillAnswer>(moduleBeside(import.meta.url, 'config-worker'))
  return {
    async fill(order) {
      const { format, text, settings } = order
      if (text.length * settings.length <= INLINE_MAX) return fillConfig(format, text, settings)
      const answer = await thread.ask(order).catch((error: unknown) => {
        if (error instanceof TooExpensive) return { fault: `it ${error.message}` }
        throw error
      })
      if ('text' in answer) return answer.text
      if ('fault' in answer) throw new ConfigFault(answer.fault)
      throw new Error(answer.error)
    },
  }
}
