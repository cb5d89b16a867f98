import { useLingui } from '@lingui/react/macro'
import type { Server } from '../../../../src/sdk/index.ts'
import { formatBytes } from '../../i18n/format.ts'

const FULL_FROM_PERCENT = 90

/** "1.2 GiB of 5 GiB"; null until it was measured. */
export function useDiskWords({ diskUsage, limits }: Server) {
  const { t, i18n } = useLingui()
  if (diskUsage === null) return null
  const used = formatBytes(diskUsage.sizeBytes, i18n.locale)
  if (limits.diskBytes === null) return { text: used, percent: null, isFull: false }
  const all = formatBytes(limits.diskBytes, i18n.locale)
  const percent = Math.min(100, (diskUsage.sizeBytes / limits.diskBytes) * 100)
  return { text: t`${used} of ${all}`, percent, isFull: percent > FULL_FROM_PERCENT }
}
