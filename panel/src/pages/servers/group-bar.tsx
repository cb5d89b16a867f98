import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import type { PowerAction, Server } from '../../../../src/sdk/index.ts'
import { useGroupPower } from '../../api/group-power.ts'
import { Icon } from '../../components/icon.tsx'
import { POSSIBLE_ACTIONS, POWER_ACTIONS } from '../../components/power-buttons.tsx'
import { showFailure } from '../../components/toasts.tsx'
import css from './servers-page.module.css'

const OFFERED = ['start', 'stop', 'restart'] as const satisfies readonly PowerAction[]

/** What can be done to all that are chosen, at once. */
export function GroupBar({ servers, onClear }: { servers: readonly Server[]; onClear: () => void }) {
  const { t } = useLingui()
  const power = useGroupPower()
  const act = (action: PowerAction, able: readonly Server[]) =>
    power.mutate(
      { servers: able, action },
      {
        onSuccess: (failures) => {
          for (const { server, error } of failures) {
            showFailure(`${server.name}: ${t(POWER_ACTIONS[action].failure)}`, error)
          }
        },
      },
    )
  return (
    <section className={css.group} aria-label={t`Chosen servers`}>
      <span className="grow">
        <Plural value={servers.length} one="# server chosen" other="# servers chosen" />
      </span>
      {OFFERED.map((action) => {
        const able = servers.filter(
          ({ status, power: { state } }) => status === 'ready' && POSSIBLE_ACTIONS[state].includes(action),
        )
        return (
          <Button
            key={action}
            size="xs"
            variant="default"
            leftSection={<Icon name={POWER_ACTIONS[action].icon} size={14} />}
            disabled={able.length === 0}
            loading={power.isPending && power.variables.action === action}
            onClick={() => act(action, able)}
          >
            {t(POWER_ACTIONS[action].label)}
          </Button>
        )
      })}
      <Button size="xs" variant="subtle" color="gray" onClick={onClear}>
        <Trans>Choose none</Trans>
      </Button>
    </section>
  )
}
