import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useState } from 'react'
import type { Server } from '../../../../../src/sdk/index.ts'
import { exportActivity, useActivity } from '../../../api/activity.ts'
import { Empty } from '../../../components/empty.tsx'
import { Icon } from '../../../components/icon.tsx'
import { Problem } from '../../../components/problem.tsx'
import { saveFile } from '../../../components/save-file.ts'
import { showFailure } from '../../../components/toasts.tsx'
import { ActivityRow } from './activity-row.tsx'
import css from './activity-tab.module.css'

export default function ActivityTab({ server }: { server: Server }) {
  const { t } = useLingui()
  const [typed, setTyped] = useState('')
  const [search] = useDebouncedValue(typed.trim(), 250)
  const { entries, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage, isLive } = useActivity(
    server.id,
    search,
  )
  const save = () =>
    exportActivity(server.id, 'csv', search).then(
      (content) => saveFile(`${server.name} activity.csv`, content),
      (failure: unknown) => showFailure(t`It could not be exported`, failure),
    )
  return (
    <div className="stack">
      <div className="row">
        <TextInput
          className="grow"
          type="search"
          aria-label={t`Search the activity`}
          placeholder={t`Search: a name, a path, an address`}
          leftSection={<Icon name="search" size={16} />}
          value={typed}
          maxLength={191}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
        <span className={css.live} data-live={isLive || undefined} role="status">
          {isLive ? <Trans>Live</Trans> : <Trans>Connecting…</Trans>}
        </span>
        <Button variant="default" leftSection={<Icon name="download" size={16} />} onClick={() => void save()}>
          <Trans>Export</Trans>
        </Button>
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!entries && !error && <Skeleton height={240} radius="md" />}
      {entries?.length === 0 && (
        <Empty icon="activity" title={search === '' ? t`Nothing has happened yet` : t`Nothing matches`} />
      )}
      {entries && entries.length > 0 && (
        <ol className={`card ${css.entries}`}>
          {entries.map((entry) => (
            <ActivityRow key={entry.id} entry={entry} />
          ))}
        </ol>
      )}
      {hasNextPage && (
        <Button variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          <Trans>Earlier</Trans>
        </Button>
      )}
    </div>
  )
}
