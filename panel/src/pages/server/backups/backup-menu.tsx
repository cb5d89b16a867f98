import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Menu } from '@mantine/core'
import { useState } from 'react'
import { useLocation } from 'wouter'
import type { Backup, BackupFormat, Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { isCompleted, isWorking, useBackupActions } from '../../../api/backups.ts'
import { Confirm } from '../../../components/confirm.tsx'
import { Icon, type IconName } from '../../../components/icon.tsx'
import { showFailure } from '../../../components/toasts.tsx'
import { addressOfBackups } from './addresses.ts'
import { useProofs } from './proofs.tsx'

interface Props {
  server: Server
  backup: Backup
  /** After it is gone. */
  onDeleted?: () => void
}

const FORMATS: readonly BackupFormat[] = ['zip', 'tar.gz', 'tar.zst']

export function BackupMenu({ server, backup, onDeleted }: Props) {
  const { t } = useLingui()
  const may = useMay()
  const [, navigate] = useLocation()
  const [isDeleting, setDeleting] = useState(false)
  const { verify, rehearse } = useProofs({ server, backup })
  const mayWrite = may('backups:write')
  const go = (view: Parameters<typeof addressOfBackups>[1]) => () => navigate(addressOfBackups(server.id, view))
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t`More about ${backup.name}`}>
            <Icon name="dots" />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {isCompleted(backup) && (
            <>
              <Item icon="folder" label={t`Look inside`} onClick={go({ inside: backup.id })} />
              <Item icon="copy" label={t`Compare`} onClick={go({ from: backup.id })} />
              <Downloads server={server} backup={backup} />
            </>
          )}
          {isCompleted(backup) && mayWrite && (
            <>
              <Menu.Divider />
              <Item icon="shield" label={t`Verify`} onClick={() => verify.mutate()} />
              <Item icon="play" label={t`Rehearse`} onClick={() => rehearse.mutate()} />
            </>
          )}
          {mayWrite && (
            <Menu.Item
              color="red"
              leftSection={<Icon name="trash" size={16} />}
              disabled={backup.isLocked}
              onClick={() => setDeleting(true)}
            >
              {isWorking(backup) ? <Trans>Cancel it</Trans> : <Trans>Delete</Trans>}
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      <DeleteQuestion
        server={server}
        backup={backup}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onDeleted={onDeleted}
      />
    </>
  )
}

function Item({ icon, label, onClick }: { icon: IconName; label: string; onClick: () => void }) {
  return (
    <Menu.Item leftSection={<Icon name={icon} size={16} />} onClick={onClick}>
      {label}
    </Menu.Item>
  )
}

function Downloads({ server, backup: { id } }: Props) {
  const { t } = useLingui()
  const { download } = useBackupActions(server.id)
  const onError = (error: Error) => showFailure(t`It could not be downloaded`, error)
  return FORMATS.map((format) => (
    <Item
      key={format}
      icon="download"
      label={t`Download as .${format}`}
      onClick={() => download.mutate({ id, format }, { onError })}
    />
  ))
}

interface QuestionProps extends Omit<Props, 'onDeleted'> {
  isOpen: boolean
  onClose: () => void
  onDeleted: (() => void) | undefined
}

function DeleteQuestion({ server, backup, isOpen, onClose, onDeleted }: QuestionProps) {
  const { t } = useLingui()
  const { remove } = useBackupActions(server.id)
  const { id, name } = backup
  const isUnderWay = isWorking(backup)
  return (
    <Confirm
      isOpen={isOpen}
      onClose={onClose}
      onConfirm={() =>
        remove.mutate(id, {
          onSuccess: () => onDeleted?.(),
          onError: (error) => showFailure(t`It could not be deleted`, error),
        })
      }
      title={isUnderWay ? t`Cancel the backup ${name}?` : t`Delete the backup ${name}?`}
      text={
        isUnderWay
          ? t`Nothing is kept of it. The files of the server are not touched.`
          : t`It is gone for good. The files of the server and the other backups are not touched.`
      }
      action={isUnderWay ? t`Cancel the backup` : t`Delete`}
    />
  )
}
