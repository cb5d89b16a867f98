import { Trans, useLingui } from '@lingui/react/macro'
import { Button, NativeSelect, Skeleton } from '@mantine/core'
import { Link, useLocation } from 'wouter'
import type { Backup, BackupChange, Server } from '../../../../../../src/sdk/index.ts'
import { useComparison } from '../../../../api/backup-contents.ts'
import { isCompleted, useAllBackups } from '../../../../api/backups.ts'
import { Empty } from '../../../../components/empty.tsx'
import { Problem } from '../../../../components/problem.tsx'
import { formatBytes, shortTime } from '../../../../i18n/format.ts'
import { addressOfBackups } from '../addresses.ts'
import inside from '../inside/inside.module.css'
import css from './comparison.module.css'

interface Props {
  server: Server
  from: string
  /** Null: the files as they are now. */
  to: string | null
}

export default function Comparison({ server, from, to }: Props) {
  const { t } = useLingui()
  const comparison = useComparison(server.id, from, to)
  const changes = comparison.data?.pages.flatMap((page) => page.data)
  return (
    <section className="stack" aria-label={t`Compare`}>
      <Link href={addressOfBackups(server.id)} className={inside.back}>
        <Trans>All backups</Trans>
      </Link>
      <Sides server={server} from={from} to={to} />
      {comparison.error && <Problem error={comparison.error} onRetry={() => void comparison.refetch()} />}
      {!changes && !comparison.error && <Skeleton height={240} radius="md" />}
      {changes?.length === 0 && (
        <div className="card">
          <Empty icon="check" title={t`They are the same`} />
        </div>
      )}
      {changes && changes.length > 0 && (
        <ul className={`card ${css.changes}`}>
          {changes.map((change) => (
            <ChangeRow key={change.path} change={change} />
          ))}
        </ul>
      )}
      {comparison.hasNextPage && (
        <Button
          variant="default"
          loading={comparison.isFetchingNextPage}
          onClick={() => void comparison.fetchNextPage()}
        >
          <Trans>More</Trans>
        </Button>
      )}
    </section>
  )
}

function Sides({ server, from, to }: Props) {
  const { t, i18n } = useLingui()
  const [, navigate] = useLocation()
  const { data } = useAllBackups(server.id)
  const option = ({ id, name, createdAt }: Backup) => ({
    value: id,
    label: `${name} (${shortTime(new Date(createdAt), i18n.locale)})`,
  })
  const options = data?.filter(isCompleted).map(option) ?? []
  const show = (nextFrom: string, nextTo: string) =>
    navigate(addressOfBackups(server.id, { from: nextFrom, ...(nextTo ? { to: nextTo } : {}) }), { replace: true })
  return (
    <div className={css.sides}>
      <NativeSelect
        label={t`From`}
        data={options}
        value={from}
        onChange={(event) => show(event.currentTarget.value, to ?? '')}
      />
      <NativeSelect
        label={t`To`}
        data={[{ value: '', label: t`The files as they are now` }, ...options]}
        value={to ?? ''}
        onChange={(event) => show(from, event.currentTarget.value)}
      />
    </div>
  )
}

function ChangeRow({ change: { path, kind, change, fromBytes, toBytes } }: { change: BackupChange }) {
  const { t, i18n } = useLingui()
  const words = { added: t`Added`, removed: t`Removed`, changed: t`Changed` }
  const size = (bytes: number | null) => (bytes === null ? '' : formatBytes(bytes, i18n.locale))
  const sizes = change === 'changed' ? `${size(fromBytes)} → ${size(toBytes)}` : size(fromBytes ?? toBytes)
  return (
    <li>
      <span className={css.word} data-change={change}>
        {words[change]}
      </span>
      <span className={`mono ${css.path}`}>{path}</span>
      {kind === 'file' && <span className="faint small">{sizes}</span>}
    </li>
  )
}
