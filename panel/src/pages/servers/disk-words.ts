import { useLingui } from '@lingui/react/macro'
import type { Server } from '../../../../src/sdk/index.ts'
import { useDiskUse } from '../../api/usage.ts'
import { formatBytes } from '../../i18n/format.ts'

const FULL_FROM_PERCENT = 90

/** "1.2 GiB of 5 GiB", and of when that is; null until it was measured. */
export function useDiskWords(server: Server, isSeen: boolean) {
  const { t, i18n } = useLingui()
  const use = useDiskUse(server, isSeen)
  const { limits } = server
  if (use === null) return null
  const { bytes, at } = use
  const used = formatBytes(bytes, i18n.locale)
  if (limits.diskBytes === null) return { text: used, at, percent: null, isFull: false }
  const all = formatBytes(limits.diskBytes, i18n.locale)
  const percent = Math.min(100, (bytes / limits.diskBytes) * 100)
  return { text: t`${used} of ${all}`, at, percent, isFull: percent > FULL_FROM_PERCENT }
}
