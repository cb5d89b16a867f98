import { msg } from '@lingui/core/macro'
import { useLingui } from '@lingui/react/macro'
import type { PowerState } from '../../../src/sdk/index.ts'
import css from './power-state.module.css'

export const STATE_NAMES = {
  stopped: msg`Stopped`,
  starting: msg`Starting`,
  running: msg`Running`,
  stopping: msg`Stopping`,
  crashed: msg`Crashed`,
  sleeping: msg`Sleeping`,
} as const satisfies Record<PowerState, unknown>

/** Colour never says it alone: the name is there for screen readers, and beside it in the badge. */
export function StateDot({ state }: { state: PowerState }) {
  const { t } = useLingui()
  return <span className={css.dot} data-state={state} role="img" aria-label={t(STATE_NAMES[state])} />
}

export function StateBadge({ state }: { state: PowerState }) {
  const { t } = useLingui()
  return (
    <span className={css.badge} data-state={state}>
      <span className={css.dot} data-state={state} />
      {t(STATE_NAMES[state])}
    </span>
  )
}
