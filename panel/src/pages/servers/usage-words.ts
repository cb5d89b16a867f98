import { useLingui } from '@lingui/react/macro'
import type { StatsPoint } from '../../../../src/sdk/index.ts'
import { formatBytes } from '../../i18n/format.ts'

const UNKNOWN = '–'

/** As text: a dash where it is not known. */
export function useUsageWords(usage: StatsPoint | null) {
  const { i18n } = useLingui()
  const percent = (value: number) =>
    new Intl.NumberFormat(i18n.locale, { style: 'percent', maximumFractionDigits: 0 }).format(value / 100)
  return {
    players: usage?.players == null ? UNKNOWN : String(usage.players),
    cpu: usage?.cpuPercent == null ? UNKNOWN : percent(usage.cpuPercent),
    memory: usage?.memoryBytes == null ? UNKNOWN : formatBytes(usage.memoryBytes, i18n.locale),
  }
}
