import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Button, Progress, Tooltip } from '@mantine/core'
import { Link } from 'wouter'
import type { Backup, Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { isCompleted, isWorking, useBackupActions } from '../../../api/backups.ts'
import { Icon } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import { showFailure } from '../../../components/toasts.tsx'
import { formatBytes } from '../../../i18n/format.ts'
import { addressOfBackups } from './addresses.ts'
import { BackupMenu } from './backup-menu.tsx'
import { Marks } from './marks.tsx'
import { Proofs } from './proofs.tsx'
import css from './timeline.module.css'

interface Props {
  server: Server
  backup: Backup
  /** How much it added, of the most that one in sight did. */
  share: number
  onRestore: () => void
}

export function BackupRow({ server, backup, share, onRestore }: Props) {
  const may = useMay()
  const tone = backup.error ? 'bad' : isWorking(backup) ? 'working' : 'good'
  const mayWrite = may('backups:write')
  return (
    <li className={css.backup} data-tone={tone}>
      <div className={css.body}>
        <p className={css.name}>
          {isCompleted(backup) ? (
            <Link className="cut" href={addressOfBackups(server.id, { inside: backup.id })}>
              {backup.name}
            </Link>
          ) : (
            <span className="cut">{backup.name}</span>
          )}
        </p>
        <div className={css.figures}>
          <Moment at={backup.createdAt} />
          <Figures backup={backup} share={share} />
        </div>
        <div className={css.figures}>
          <Marks backup={backup} />
          {mayWrite && isCompleted(backup) && <Proofs server={server} backup={backup} />}
        </div>
      </div>
      <div className={css.actions}>
        {mayWrite && <LockButton server={server} backup={backup} />}
        {isCompleted(backup) && backup.error === null && mayWrite && (
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

function LockButton({ server, backup: { id, isLocked, name, status } }: { server: Server; backup: Backup }) {
  const { t } = useLingui()
  const { setLocked } = useBackupActions(server.id)
  if (status === 'failed') return null
  const label = isLocked ? t`Unlock ${name}` : t`Lock ${name}`
  const hint = isLocked
    ? t`Locked: nobody can delete it, nor any rule. Click to unlock`
    : t`Lock: keep it from being deleted`
  return (
    <Tooltip label={hint} multiline maw={260}>
      <ActionIcon
        variant={isLocked ? 'light' : 'subtle'}
        color={isLocked ? undefined : 'gray'}
        size="lg"
        aria-label={label}
        onClick={() =>
          setLocked.mutate(
            { id, isLocked: !isLocked },
            { onError: (error) => showFailure(t`The lock was not changed`, error) },
          )
        }
      >
        <Icon name={isLocked ? 'lock' : 'unlock'} size={17} />
      </ActionIcon>
    </Tooltip>
  )
}

function Figures({ backup, share }: { backup: Backup; share: number }) {
  const { t, i18n } = useLingui()
  const { fileCount, sizeBytes, storedBytes } = backup
  if (fileCount === null || sizeBytes === null) return null
  return (
    <>
      <span>
        <Plural value={fileCount} one="# file" other="# files" />, {formatBytes(sizeBytes, i18n.locale)}
      </span>
      {storedBytes !== null && (
        <span className={css.added} title={t`What it added to the store`}>
          <Trans>added {formatBytes(storedBytes, i18n.locale)}</Trans>
          <span className={css.bar} aria-hidden="true">
            <span style={{ width: `${share * 100}%` }} />
          </span>
        </span>
      )}
    </>
  )
}

function BackupProgress({ backup: { status, progress } }: { backup: Backup }) {
  const { t, i18n } = useLingui()
  const { bytesDone, bytesTotal } = progress
  const percent = bytesTotal ? Math.min(100, (bytesDone / bytesTotal) * 100) : 0
  const done = formatBytes(bytesDone, i18n.locale)
  return (
    <div className={css.progress}>
      <Progress value={status === 'queued' ? 0 : percent} animated size="sm" aria-label={t`Progress`} />
      <p className="small faint">
        {status === 'queued' ? (
          <Trans>Waiting for its turn</Trans>
        ) : bytesTotal === null ? (
          done
        ) : (
          <Trans>
            {done} of {formatBytes(bytesTotal, i18n.locale)}
          </Trans>
        )}
      </p>
    </div>
  )
}
