import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Menu } from '@mantine/core'
import { useState } from 'react'
import type { Backup, Server } from '../../../../../src/sdk/index.ts'
import { isWorking, useBackupActions } from '../../../api/backups.ts'
import { useMay } from '../../../api/session.ts'
import { Confirm } from '../../../components/confirm.tsx'
import { Icon } from '../../../components/icon.tsx'
import { showFailure, showToast } from '../../../components/toasts.tsx'

export function BackupMenu({ server, backup }: { server: Server; backup: Backup }) {
  const { t } = useLingui()
  const may = useMay()
  const { setLocked, verify, remove, download } = useBackupActions(server.id)
  const [isDeleting, setDeleting] = useState(false)
  const isUnderWay = isWorking(backup)
  const isWhole = backup.status === 'completed'
  const { id, isLocked, name } = backup
  const failed = (text: string) => ({ onError: (error: Error) => showFailure(text, error) })
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t`More about ${name}`}>
            <Icon name="dots" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {isWhole && (
            <Menu.Item
              leftSection={<Icon name="download" size={16} />}
              onClick={() => download.mutate(id, failed(t`It could not be downloaded`))}
            >
              <Trans>Download</Trans>
            </Menu.Item>
          )}
          {isWhole && may('backups:write') && (
            <>
              <Menu.Item
                leftSection={<Icon name="shield" size={16} />}
                onClick={() =>
                  verify.mutate(id, {
                    onSuccess: () => showToast(t`Every byte of ${name} was read, and is right.`),
                    ...failed(t`It could not be verified`),
                  })
                }
              >
                <Trans>Verify</Trans>
              </Menu.Item>
              <Menu.Item
                leftSection={<Icon name={isLocked ? 'unlock' : 'lock'} size={16} />}
                onClick={() => setLocked.mutate({ id, isLocked: !isLocked }, failed(t`The lock was not changed`))}
              >
                {isLocked ? <Trans>Unlock</Trans> : <Trans>Lock</Trans>}
              </Menu.Item>
            </>
          )}
          {may('backups:write') && (
            <Menu.Item
              color="red"
              leftSection={<Icon name="trash" size={16} />}
              disabled={isLocked}
              onClick={() => setDeleting(true)}
            >
              {isUnderWay ? <Trans>Cancel it</Trans> : <Trans>Delete</Trans>}
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      <Confirm
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={() => remove.mutate(id, failed(t`It could not be deleted`))}
        title={isUnderWay ? t`Cancel the backup ${name}?` : t`Delete the backup ${name}?`}
        text={
          isUnderWay
            ? t`Nothing is kept of it. The files of the server are not touched.`
            : t`It is gone for good. The files of the server and the other backups are not touched.`
        }
        action={isUnderWay ? t`Cancel the backup` : t`Delete`}
      />
    </>
  )
}
