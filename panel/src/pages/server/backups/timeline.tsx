import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useState } from 'react'
import type { Backup, Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { useBackups } from '../../../api/backups.ts'
import { Empty } from '../../../components/empty.tsx'
import { Icon } from '../../../components/icon.tsx'
import { Problem } from '../../../components/problem.tsx'
import { formatBytes } from '../../../i18n/format.ts'
import { BackupRow } from './backup-row.tsx'
import { CreateBackup } from './create-backup.tsx'
import { groupByDay } from './days.ts'
import { LastRestore } from './last-restore.tsx'
import { RestoreDialog } from './restore-dialog.tsx'
import css from './timeline.module.css'

/** What there is, newest first, a day at a time, and what each added to the store. */
export function Timeline({ server }: { server: Server }) {
  const { t } = useLingui()
  const may = useMay()
  const { backups, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useBackups(server.id)
  const [isCreating, setCreating] = useState(false)
  const [restored, setRestored] = useState<Backup | null>(null)
  const create = may('backups:write') && (
    <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setCreating(true)}>
      <Trans>Back up now</Trans>
    </Button>
  )
  return (
    <>
      <LastRestore server={server} onRestore={setRestored} />
      {backups && backups.length > 0 && (
        <div className="row spread">
          <Summary backups={backups} hasMore={hasNextPage} />
          {create}
        </div>
      )}
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!backups && !error && <Skeleton height={200} radius="md" />}
      {backups?.length === 0 && (
        <div className="card">
          <Empty icon="archive" title={t`No backups yet`}>
            <p>
              <Trans>
                A backup keeps all files of the server as they are now. Bring back everything, or a single file.
              </Trans>
            </p>
            {create}
          </Empty>
        </div>
      )}
      {backups && <Days server={server} backups={backups} onRestore={setRestored} />}
      {hasNextPage && (
        <Button variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          <Trans>Older backups</Trans>
        </Button>
      )}
      <CreateBackup server={server} isOpen={isCreating} onClose={() => setCreating(false)} />
      <RestoreDialog server={server} backup={restored} paths={null} onClose={() => setRestored(null)} />
    </>
  )
}

function Summary({ backups, hasMore }: { backups: readonly Backup[]; hasMore: boolean }) {
  const { i18n } = useLingui()
  const storedBytes = backups.reduce((sum, backup) => sum + (backup.storedBytes ?? 0), 0)
  const size = formatBytes(storedBytes, i18n.locale)
  return (
    <p className="soft">
      {hasMore ? (
        <Trans>
          The newest {backups.length} take {size}: each adds only what the ones before did not have.
        </Trans>
      ) : (
        <>
          <Plural value={backups.length} one="# backup," other="# backups," />{' '}
          <Trans>{size} in all: each adds only what the ones before did not have.</Trans>
        </>
      )}
    </p>
  )
}

interface DaysProps {
  server: Server
  backups: readonly Backup[]
  onRestore: (backup: Backup) => void
}

function Days({ server, backups, onRestore }: DaysProps) {
  const { i18n } = useLingui()
  const mostBytes = Math.max(1, ...backups.map(({ storedBytes }) => storedBytes ?? 0))
  return (
    <div className={css.days}>
      {groupByDay(backups, i18n.locale).map(({ day, items }) => (
        <section key={day} aria-label={day}>
          <h2 className={css.day}>{day}</h2>
          <ul className={`card ${css.backups}`}>
            {items.map((backup) => (
              <BackupRow
                key={backup.id}
                server={server}
                backup={backup}
                share={(backup.storedBytes ?? 0) / mostBytes}
                onRestore={() => onRestore(backup)}
              />
            ))}
          </ul>
        </section>
      ))}
    </div>
  )
}
