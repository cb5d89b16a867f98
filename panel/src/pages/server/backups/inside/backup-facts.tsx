import { Plural, Trans, useLingui } from '@lingui/react/macro'
import type { Backup, Server } from '../../../../../../src/sdk/index.ts'
import { useMay } from '../../../../api/access/session.ts'
import { useRehearsal } from '../../../../api/backups.ts'
import { Moment } from '../../../../components/moment.tsx'
import { formatBytes } from '../../../../i18n/format.ts'
import { Marks } from '../marks.tsx'
import { Proofs } from '../proofs.tsx'
import css from './inside.module.css'

export function BackupFacts({ server, backup }: { server: Server; backup: Backup }) {
  const { i18n } = useLingui()
  const mayWrite = useMay()('backups:write')
  return (
    <div className="stack">
      <div className={css.facts}>
        <Moment at={backup.createdAt} />
        {backup.sizeBytes !== null && (
          <span>
            <Plural value={backup.fileCount ?? 0} one="# file" other="# files" />,{' '}
            {formatBytes(backup.sizeBytes, i18n.locale)}
          </span>
        )}
        <Marks backup={backup} />
        {mayWrite && <Proofs server={server} backup={backup} />}
      </div>
      {backup.ignored.trim() !== '' && (
        <details className={css.details}>
          <summary>
            <Trans>Left out by its patterns</Trans>
          </summary>
          <pre>{backup.ignored}</pre>
        </details>
      )}
      {backup.warnings.length > 0 && (
        <details className={css.details}>
          <summary>
            <Plural value={backup.warnings.length} one="# warning" other="# warnings" />
          </summary>
          <pre>{backup.warnings.join('\n')}</pre>
        </details>
      )}
      {backup.rehearsal && <RehearsalLog server={server} backup={backup} />}
    </div>
  )
}

function RehearsalLog({ server, backup }: { server: Server; backup: Backup }) {
  const { data } = useRehearsal(server.id, backup)
  if (!data) return null
  return (
    <details className={css.details} open={data.outcome === 'failed'}>
      <summary>
        <Trans>Console of the rehearsal</Trans>
      </summary>
      {data.reason && <p>{data.reason}</p>}
      <pre>{data.log.join('\n')}</pre>
    </details>
  )
}
