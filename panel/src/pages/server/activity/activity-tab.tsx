import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Menu, Skeleton } from '@mantine/core'
import type { ExportFormat, Server } from '../../../../../src/sdk/index.ts'
import { exportActivity, useActivity, useActors } from '../../../api/activity.ts'
import { Empty } from '../../../components/empty.tsx'
import { Icon } from '../../../components/icon.tsx'
import { Problem } from '../../../components/problem.tsx'
import { saveFile } from '../../../components/save-file.ts'
import { showFailure } from '../../../components/toasts.tsx'
import { ActivityFilters, useFilters } from './activity-filters.tsx'
import { ActivityRow } from './activity-row.tsx'
import css from './activity-tab.module.css'

export default function ActivityTab({ server }: { server: Server }) {
  const { t } = useLingui()
  const filters = useFilters()
  const { filter } = filters
  const { entries, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage, isLive } = useActivity(
    server.id,
    filter,
  )
  const actors = useActors(entries)
  const isFiltered = Object.keys(filter).length > 0
  const save = (format: ExportFormat) =>
    exportActivity(server.id, format, filter).then(
      (content) => saveFile(`${server.name} activity.${format}`, content),
      (failure: unknown) => showFailure(t`It could not be exported`, failure),
    )
  return (
    <div className="stack">
      <ActivityFilters filters={filters} actors={actors} />
      <div className="row spread">
        <span className={css.live} data-live={isLive || undefined} role="status">
          {isLive ? <Trans>Live</Trans> : <Trans>Connecting…</Trans>}
        </span>
        <Menu position="bottom-end">
          <Menu.Target>
            <Button variant="default" size="xs" leftSection={<Icon name="download" size={16} />}>
              <Trans>Export</Trans>
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Label>
              <Trans>Everything that matches</Trans>
            </Menu.Label>
            <Menu.Item onClick={() => void save('csv')}>
              <Trans>As a table (CSV)</Trans>
            </Menu.Item>
            <Menu.Item onClick={() => void save('ndjson')}>
              <Trans>As lines of JSON</Trans>
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!entries && !error && <Skeleton height={240} radius="md" />}
      {entries?.length === 0 && (
        <Empty icon="activity" title={isFiltered ? t`Nothing matches` : t`Nothing has happened yet`}>
          {isFiltered && (
            <Button variant="default" onClick={filters.reset}>
              <Trans>Show everything</Trans>
            </Button>
          )}
        </Empty>
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
