import { useLingui } from '@lingui/react/macro'
import { Tooltip } from '@mantine/core'
import { useSyncExternalStore } from 'react'
import { exactTime, relativeTime } from '../i18n/format.ts'

const TICK_MS = 15_000
let now = new Date()
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

/** One clock for all moments of a page. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(() => {
    now = new Date()
    for (const each of listeners) each()
  }, TICK_MS)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** How long ago, with the exact time in the viewer's zone on hover. */
export function Moment({ at }: { at: string }) {
  const { i18n } = useLingui()
  const current = useSyncExternalStore(subscribe, () => now)
  const date = new Date(at)
  // A moment younger than the clock's last tick lies in the past all the same.
  const latest = date > current && date.getTime() - current.getTime() < TICK_MS * 2 ? date : current
  return (
    <Tooltip label={exactTime(date, i18n.locale)}>
      <time dateTime={at}>{relativeTime(date, latest, i18n.locale)}</time>
    </Tooltip>
  )
}
