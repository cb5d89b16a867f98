import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton, TextInput } from '@mantine/core'
import { useDeferredValue, useState } from 'react'
import { Link } from 'wouter'
import type { Server } from '../../../../src/sdk/index.ts'
import { useMay, useMayCreate } from '../../api/access/session.ts'
import { addressOf, isLateList, useServers } from '../../api/servers.ts'
import { Empty } from '../../components/empty.tsx'
import { Icon } from '../../components/icon.tsx'
import { lazyPart } from '../../components/lazy-part.ts'
import { PageTitle } from '../../components/page-title.tsx'
import { Problem } from '../../components/problem.tsx'
import { clockTime } from '../../i18n/format.ts'
import { DeletedServers } from './deleted-servers.tsx'
import { GroupBar } from './group-bar.tsx'
import { allLabels, hasLabels } from './labels.ts'
import { matchesSearch } from './search.ts'
import { useSelection } from './selection.ts'
import { ServerCard } from './server-card.tsx'
import css from './servers-page.module.css'
import { ServersTable } from './servers-table.tsx'
import { useServersView, ViewChoice } from './view-choice.tsx'

const Welcome = lazyPart(() => import('../new-server/welcome.tsx'))

export function ServersPage() {
  const { data: servers, error, refetch, dataUpdatedAt } = useServers()
  const mayCreate = useMayCreate()
  if (servers?.length === 0) {
    return (
      <>
        {mayCreate ? <Welcome /> : <NothingShared />}
        <DeletedServers />
      </>
    )
  }
  return (
    <>
      {servers && <Servers servers={servers} error={error} />}
      {servers && isLateList(servers) && <ReadAt at={dataUpdatedAt} />}
      <DeletedServers />
      {!servers && error && <Problem error={error} onRetry={() => void refetch()} />}
      {!servers && !error && <CardSkeletons />}
    </>
  )
}

function Servers({ servers, error }: { servers: readonly Server[]; error: Error | null }) {
  const { t } = useLingui()
  const may = useMay()
  const mayCreate = useMayCreate()
  const [view, setView] = useServersView()
  const [search, setSearch] = useState('')
  const labels = useSelection()
  const selection = useSelection()
  const deferredSearch = useDeferredValue(search)
  const shown = servers.filter(
    (server) => matchesSearch(server, addressOf(server), deferredSearch) && hasLabels(server, labels.ids),
  )
  const chosen = shown.filter(({ id }) => selection.has(id))
  const choosable = may('power:write') && servers.length > 1 ? selection : null
  const showAll = () => {
    setSearch('')
    labels.set([])
  }
  return (
    <div className="stack">
      <PageTitle title={t`Servers`}>
        {servers.length > 1 && (
          <>
            <ViewChoice view={view} onChange={setView} />
            <TextInput
              className={css.search}
              type="search"
              aria-label={t`Search servers`}
              placeholder={t`Search`}
              leftSection={<Icon name="search" size={16} />}
              value={search}
              onChange={(event) => setSearch(event.currentTarget.value)}
            />
          </>
        )}
        {mayCreate && (
          <Button component={Link} href="/servers/new" leftSection={<Icon name="plus" size={16} />}>
            <Trans>New server</Trans>
          </Button>
        )}
      </PageTitle>
      {error && <Problem error={error} />}
      <LabelChips all={allLabels(servers)} chosen={labels.ids} onToggle={labels.toggle} />
      {chosen.length > 0 && <GroupBar servers={chosen} onClear={() => selection.set([])} />}
      {shown.length === 0 && <NoMatch onShowAll={showAll} />}
      {shown.length > 0 && view === 'table' && <ServersTable servers={shown} selection={choosable} />}
      {shown.length > 0 && view === 'cards' && (
        <ul className={css.cards}>
          {shown.map((server) => (
            <ServerCard key={server.id} server={server} selection={choosable} />
          ))}
        </ul>
      )}
    </div>
  )
}

interface LabelChipsProps {
  all: readonly string[]
  chosen: ReadonlySet<string>
  onToggle: (label: string) => void
}

function LabelChips({ all, chosen, onToggle }: LabelChipsProps) {
  const { t } = useLingui()
  if (all.length === 0) return null
  return (
    <fieldset className={css.labels} aria-label={t`Labels`}>
      {all.map((label) => (
        <button
          key={label}
          type="button"
          className={`cut ${css.label}`}
          aria-pressed={chosen.has(label)}
          onClick={() => onToggle(label)}
        >
          {label}
        </button>
      ))}
    </fieldset>
  )
}

function NoMatch({ onShowAll }: { onShowAll: () => void }) {
  const { t } = useLingui()
  return (
    <Empty icon="search" title={t`No server matches`}>
      <Button variant="default" onClick={onShowAll}>
        <Trans>Show all</Trans>
      </Button>
    </Empty>
  )
}

function ReadAt({ at }: { at: number }) {
  const { i18n } = useLingui()
  const time = clockTime(new Date(at), i18n.locale)
  return (
    <p className="small faint">
      <Trans>As of {time}</Trans>
    </p>
  )
}

function NothingShared() {
  const { t } = useLingui()
  return (
    <div className="card">
      <Empty icon="server" title={t`There is no server for you yet`}>
        <p>
          <Trans>Nobody has shared a server with you yet. Ask whoever gave you access.</Trans>
        </p>
      </Empty>
    </div>
  )
}

function CardSkeletons() {
  return (
    <div className={css.cards} aria-busy="true">
      {['first', 'second', 'third'].map((key) => (
        <Skeleton key={key} height={168} radius="md" />
      ))}
    </div>
  )
}
