import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useState } from 'react'
import type { Backup, Server } from '../../../../../src/sdk/index.ts'
import { useBackups } from '../../../api/backups.ts'
import { useMay } from '../../../api/session.ts'
import { Empty } from '../../../components/empty.tsx'
import { Icon } from '../../../components/icon.tsx'
import { Problem } from '../../../components/problem.tsx'
import { formatBytes } from '../../../i18n/format.ts'
import { BackupRow } from './backup-row.tsx'
import css from './backups-tab.module.css'
import { CreateBackup } from './create-backup.tsx'
import { RestoreDialog } from './restore-dialog.tsx'

export default function BackupsTab({ server }: { server: Server }) {
  const { t, i18n } = useLingui()
  const may = useMay()
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useBackups(server.id)
  const [isCreating, setCreating] = useState(false)
  const [restored, setRestored] = useState<Backup | null>(null)
  const backups = data?.pages.flatMap((page) => page.data)
  const storedBytes = backups?.reduce((sum, backup) => sum + (backup.storedBytes ?? 0), 0) ?? 0
  const create = (
    <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setCreating(true)}>
      <Trans>Back up now</Trans>
    </Button>
  )
  return (
    <div className="stack">
      {backups && backups.length > 0 && (
        <div className="row spread">
          <p className="soft">
            <Trans>
              These take {formatBytes(storedBytes, i18n.locale)}: each adds only what the one before did not have.
            </Trans>
          </p>
          {may('backups:write') && create}
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
            {may('backups:write') && create}
          </Empty>
        </div>
      )}
      {backups && backups.length > 0 && (
        <ul className={`card ${css.backups}`}>
          {backups.map((backup) => (
            <BackupRow key={backup.id} server={server} backup={backup} onRestore={() => setRestored(backup)} />
          ))}
        </ul>
      )}
      {hasNextPage && (
        <Button variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          <Trans>Older backups</Trans>
        </Button>
      )}
      <CreateBackup server={server} isOpen={isCreating} onClose={() => setCreating(false)} />
      <RestoreDialog server={server} backup={restored} onClose={() => setRestored(null)} />
    </div>
  )
}
