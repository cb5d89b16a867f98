import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Button, Progress } from '@mantine/core'
import type { Backup, Server } from '../../../../../src/sdk/index.ts'
import { isWorking } from '../../../api/backups.ts'
import { useMay } from '../../../api/session.ts'
import { Icon } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import { formatBytes } from '../../../i18n/format.ts'
import { BackupMenu } from './backup-menu.tsx'
import css from './backups-tab.module.css'

interface Props {
  server: Server
  backup: Backup
  onRestore: () => void
}

export function BackupRow({ server, backup, onRestore }: Props) {
  const { t } = useLingui()
  const may = useMay()
  const isWhole = backup.status === 'completed' && backup.error === null
  return (
    <li className={css.backup}>
      <div className="grow">
        <p className={css.name}>
          <span className="cut">{backup.name}</span>
          {backup.isLocked && (
            <span role="img" aria-label={t`Locked`} title={t`Locked: it cannot be deleted`}>
              <Icon name="lock" size={15} />
            </span>
          )}
        </p>
        <div className={css.figures}>
          <Moment at={backup.createdAt} />
          <Figures backup={backup} />
          <Marks backup={backup} />
        </div>
      </div>
      <div className={css.actions}>
        {isWhole && may('backups:write') && (
          <Button variant="default" size="sm" leftSection={<Icon name="restore" size={16} />} onClick={onRestore}>
            <Trans>Restore</Trans>
          </Button>
        )}
        <BackupMenu server={server} backup={backup} />
      </div>
      {isWorking(backup) && <BackupProgress backup={backup} />}
    </li>
  )
}

function Figures({ backup: { fileCount, sizeBytes, storedBytes } }: { backup: Backup }) {
  const { i18n } = useLingui()
  if (fileCount === null || sizeBytes === null) return null
  return (
    <>
      <span>
        <Plural value={fileCount} one="# file" other="# files" />, {formatBytes(sizeBytes, i18n.locale)}
      </span>
      {storedBytes !== null && (
        <span>
          <Trans>added {formatBytes(storedBytes, i18n.locale)}</Trans>
        </span>
      )}
    </>
  )
}

function Marks({ backup }: { backup: Backup }) {
  if (backup.error) {
    return (
      <span className={css.mark} data-tone="bad">
        <Icon name="warning" size={14} />
        {backup.status === 'completed' ? <Trans>Damaged</Trans> : <Trans>Failed: {backup.error.detail}</Trans>}
      </span>
    )
  }
  return (
    <>
      {backup.consistency === 'live' && (
        <span className={css.mark} data-tone="warn">
          <Trans>Files changed meanwhile</Trans>
        </span>
      )}
      {backup.verifiedAt && (
        <span className={css.mark} data-tone="good">
          <Icon name="shield" size={14} />
          <Trans>
            Verified <Moment at={backup.verifiedAt} />
          </Trans>
        </span>
      )}
    </>
  )
}

function BackupProgress({ backup: { status, progress } }: { backup: Backup }) {
  const { t, i18n } = useLingui()
  const percent = progress.bytesTotal ? Math.min(100, (progress.bytesDone / progress.bytesTotal) * 100) : 0
  return (
    <div className={css.progress}>
      <Progress value={status === 'queued' ? 0 : percent} animated size="sm" aria-label={t`Progress`} />
      <p className="small faint">
        {status === 'queued' ? <Trans>Waiting for its turn</Trans> : formatBytes(progress.bytesDone, i18n.locale)}
      </p>
    </div>
  )
}
