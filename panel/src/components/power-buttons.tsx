import { msg } from '@lingui/core/macro'
import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Button, Tooltip } from '@mantine/core'
import { useState } from 'react'
import type { PowerAction, PowerState, Server } from '../../../src/sdk/index.ts'
import { useMay } from '../api/access/session.ts'
import { useIsLeaving, usePower } from '../api/servers.ts'
import { Confirm } from './confirm.tsx'
import { Icon, type IconName } from './icon.tsx'
import { showFailure } from './toasts.tsx'

export const POWER_ACTIONS = {
  start: { label: msg`Start`, failure: msg`It could not be started`, icon: 'play' },
  restart: { label: msg`Restart`, failure: msg`It could not be restarted`, icon: 'restart' },
  stop: { label: msg`Stop`, failure: msg`It could not be stopped`, icon: 'stop' },
  kill: { label: msg`Kill`, failure: msg`It could not be killed`, icon: 'skull' },
} as const satisfies Record<PowerAction, { icon: IconName; label: unknown; failure: unknown }>

/** What makes sense in each state; the first is what most people are about to do. */
export const POSSIBLE_ACTIONS: Record<PowerState, readonly PowerAction[]> = {
  stopped: ['start'],
  crashed: ['start'],
  sleeping: ['start'],
  starting: ['stop', 'kill'],
  running: ['stop', 'restart'],
  stopping: ['kill'],
}

export function PowerButtons({ server, isCompact = false }: { server: Server; isCompact?: boolean }) {
  const { t } = useLingui()
  const may = useMay()
  const power = usePower(server.id)
  const [isKilling, setKilling] = useState(false)
  const isLeaving = useIsLeaving(server)
  if (isLeaving) {
    return (
      <span className="small faint" role="status">
        <Trans>It is being deleted…</Trans>
      </span>
    )
  }
  if (!may('power:write')) return null
  const act = (action: PowerAction) =>
    power.mutate(action, { onError: (error) => showFailure(t(POWER_ACTIONS[action].failure), error) })
  return (
    <div className="row">
      {POSSIBLE_ACTIONS[server.power.state].map((action) => (
        <PowerButton
          key={action}
          action={action}
          isCompact={isCompact}
          isPending={power.isPending && power.variables === action}
          onClick={() => (action === 'kill' ? setKilling(true) : act(action))}
        />
      ))}
      <Confirm
        isOpen={isKilling}
        onClose={() => setKilling(false)}
        onConfirm={() => act('kill')}
        title={t`Kill ${server.name}?`}
        text={t`The game ends at once. What it has not saved is lost.`}
        action={t`Kill`}
      />
    </div>
  )
}

interface PowerButtonProps {
  action: PowerAction
  isCompact: boolean
  isPending: boolean
  onClick: () => void
}

function PowerButton({ action, isCompact, isPending, onClick }: PowerButtonProps) {
  const { t } = useLingui()
  const { icon, label } = POWER_ACTIONS[action]
  const isMain = action === 'start'
  const look = isMain
    ? { variant: 'filled' }
    : action === 'kill'
      ? { variant: 'light', color: 'red' }
      : { variant: 'default' }
  if (!isCompact) {
    return (
      <Button {...look} leftSection={<Icon name={icon} size={16} />} loading={isPending} onClick={onClick}>
        {t(label)}
      </Button>
    )
  }
  return (
    <Tooltip label={t(label)}>
      <ActionIcon {...look} size="lg" aria-label={t(label)} loading={isPending} onClick={onClick}>
        <Icon name={icon} size={16} />
      </ActionIcon>
    </Tooltip>
  )
}
