import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Menu, Tooltip } from '@mantine/core'
import { useState } from 'react'
import { useCommandHistory } from '../../../api/activity.ts'
import { Icon } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import css from './console.module.css'

interface Props {
  serverId: string
  onPick: (command: string) => void
}

/** What was sent, by whom and when, whoever looks now. */
export function CommandHistory({ serverId, onPick }: Props) {
  const { t } = useLingui()
  const [isOpen, setOpen] = useState(false)
  const { data: commands } = useCommandHistory(serverId, isOpen)
  return (
    <Menu opened={isOpen} onChange={setOpen} position="top-end" width={300}>
      <Menu.Target>
        <Tooltip label={t`Commands that were sent`}>
          <ActionIcon variant="subtle" size="lg" aria-label={t`Commands that were sent`}>
            <Icon name="restore" size={16} />
          </ActionIcon>
        </Tooltip>
      </Menu.Target>
      <Menu.Dropdown className={css.history}>
        {commands?.length === 0 && (
          <Menu.Label>
            <Trans>Nobody has sent a command yet.</Trans>
          </Menu.Label>
        )}
        {commands?.map(({ id, command, by, at }) => (
          <Menu.Item key={id} onClick={() => onPick(command)}>
            <span className={`mono cut ${css.sent}`}>{command}</span>
            <span className="small faint">
              {by}, <Moment at={at} />
            </span>
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
