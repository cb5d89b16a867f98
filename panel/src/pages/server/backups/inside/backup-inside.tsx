import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { Server } from '../../../../../../src/sdk/index.ts'
import { useMay } from '../../../../api/access/session.ts'
import { useBackup } from '../../../../api/backups.ts'
import { Icon } from '../../../../components/icon.tsx'
import { Problem } from '../../../../components/problem.tsx'
import { addressOfBackups } from '../addresses.ts'
import { BackupMenu } from '../backup-menu.tsx'
import { RestoreDialog } from '../restore-dialog.tsx'
import { BackupFacts } from './backup-facts.tsx'
import { BackupFolder } from './backup-folder.tsx'
import css from './inside.module.css'

interface Props {
  server: Server
  backupId: string
  path: string
}

export default function BackupInside({ server, backupId, path }: Props) {
  const { t } = useLingui()
  const [, navigate] = useLocation()
  const mayWrite = useMay()('backups:write')
  const { data: backup, error, refetch } = useBackup(server.id, backupId)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const [restoring, setRestoring] = useState<'all' | 'chosen' | null>(null)
  const list = addressOfBackups(server.id)
  if (error && !backup) return <Problem error={error} onRetry={() => void refetch()} />
  if (!backup) return <Skeleton height={320} radius="md" />
  return (
    <section className="stack" aria-label={backup.name}>
      <Link href={list} className={css.back}>
        <Trans>All backups</Trans>
      </Link>
      <div className="row">
        <h2 className={`grow ${css.title}`}>{backup.name}</h2>
        {mayWrite && backup.status === 'completed' && (
          <Button
            leftSection={<Icon name="restore" size={16} />}
            onClick={() => setRestoring(chosen.size > 0 ? 'chosen' : 'all')}
          >
            {chosen.size > 0 ? <Trans>Restore {chosen.size} chosen</Trans> : <Trans>Restore everything</Trans>}
          </Button>
        )}
        <BackupMenu server={server} backup={backup} onDeleted={() => navigate(list)} />
      </div>
      <BackupFacts server={server} backup={backup} />
      <p className="small soft">{t`Choose files and folders to bring back only these.`}</p>
      <BackupFolder server={server} backup={backup} path={path} chosen={chosen} onChoose={setChosen} />
      <RestoreDialog
        server={server}
        backup={restoring === null ? null : backup}
        paths={restoring === 'chosen' ? [...chosen] : null}
        onClose={() => setRestoring(null)}
      />
    </section>
  )
}
