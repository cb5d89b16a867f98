import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useState } from 'react'
import { Link } from 'wouter'
import type { Server, TrashItem } from '../../../../../../src/sdk/index.ts'
import { useMay } from '../../../../api/access/session.ts'
import { useUsage } from '../../../../api/files.ts'
import { useTrash, useTrashActions } from '../../../../api/trash.ts'
import { Confirm } from '../../../../components/confirm.tsx'
import { Empty } from '../../../../components/empty.tsx'
import { Icon } from '../../../../components/icon.tsx'
import { Moment } from '../../../../components/moment.tsx'
import { Problem } from '../../../../components/problem.tsx'
import { showFailure, showToast } from '../../../../components/toasts.tsx'
import { formatBytes } from '../../../../i18n/format.ts'
import { hrefOf } from '../paths.ts'
import css from './trash.module.css'

/** What was deleted or replaced, until it expires or is emptied. */
export default function Trash({ server }: { server: Server }) {
  const { t } = useLingui()
  const mayWrite = useMay()('files:write')
  const { items, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useTrash(server.id)
  return (
    <section className="stack" aria-label={t`Trash`}>
      <div className="row spread">
        <div>
          <Link href={hrefOf(server.id, '/')} className={css.back}>
            <Trans>All files</Trans>
          </Link>
          <h2>
            <Trans>Trash</Trans>
          </h2>
        </div>
        {mayWrite && items && items.length > 0 && <EmptyTrash server={server} />}
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!items && !error && <Skeleton height={240} radius="md" />}
      {items?.length === 0 && (
        <div className="card">
          <Empty icon="trash" title={t`The trash is empty`}>
            <p>
              <Trans>What is deleted or replaced is kept here for a while, and can be brought back.</Trans>
            </p>
          </Empty>
        </div>
      )}
      {items && items.length > 0 && (
        <ul className={`card ${css.items}`}>
          {items.map((item) => (
            <TrashRow key={item.id} server={server} item={item} />
          ))}
        </ul>
      )}
      {hasNextPage && (
        <Button variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          <Trans>More</Trans>
        </Button>
      )}
    </section>
  )
}

function EmptyTrash({ server }: { server: Server }) {
  const { t, i18n } = useLingui()
  const { data: usage } = useUsage(server.id)
  const { empty } = useTrashActions(server.id)
  const [isAsking, setAsking] = useState(false)
  const size = (bytes: number) => formatBytes(bytes, i18n.locale)
  return (
    <>
      <Button
        variant="default"
        leftSection={<Icon name="trash" size={16} />}
        loading={empty.isPending}
        onClick={() => setAsking(true)}
      >
        {usage ? <Trans>Empty it ({size(usage.trashBytes)})</Trans> : <Trans>Empty it</Trans>}
      </Button>
      <Confirm
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        onConfirm={() =>
          empty.mutate(undefined, {
            onSuccess: ({ freedBytes }) => showToast(t`${size(freedBytes)} are free again.`),
            onError: (error) => showFailure(t`The trash could not be emptied`, error),
          })
        }
        title={t`Empty the trash?`}
        text={
          usage ? (
            <Plural
              value={usage.trashEntries}
              one="# item is gone for good. Backups are not touched."
              other="# items are gone for good. Backups are not touched."
            />
          ) : (
            t`What is in it is gone for good. Backups are not touched.`
          )
        }
        action={t`Empty the trash`}
      />
    </>
  )
}

function TrashRow({ server, item }: { server: Server; item: TrashItem }) {
  const { t } = useLingui()
  const mayWrite = useMay()('files:write')
  const { restore } = useTrashActions(server.id)
  const bringBack = () =>
    restore.mutate(item.id, {
      onSuccess: ({ path }) => showToast(t`It is back as ${path}`),
      onError: (error) => showFailure(t`It could not be put back`, error),
    })
  return (
    <li>
      <Icon name={item.kind === 'directory' ? 'folder' : 'file'} size={17} />
      <div className={css.body}>
        <p className={css.path}>{item.path}</p>
        <p className="small faint">
          {item.reason === 'deleted' ? (
            <Trans>
              Deleted <Moment at={item.deletedAt} />
            </Trans>
          ) : (
            <Trans>
              An older version, replaced <Moment at={item.deletedAt} />
            </Trans>
          )}
          {', '}
          <Trans>
            kept until <Moment at={item.expiresAt} />
          </Trans>
        </p>
      </div>
      {mayWrite && (
        <Button
          size="compact-sm"
          variant="default"
          loading={restore.isPending}
          aria-label={t`Bring back ${item.path}`}
          onClick={bringBack}
        >
          <Trans>Bring back</Trans>
        </Button>
      )}
    </li>
  )
}
