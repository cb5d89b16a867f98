import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton, TextInput } from '@mantine/core'
import { useDeferredValue, useState } from 'react'
import { Link } from 'wouter'
import { addressOf, useServers } from '../../api/servers.ts'
import { useMay } from '../../api/session.ts'
import { Empty } from '../../components/empty.tsx'
import { Icon } from '../../components/icon.tsx'
import { PageTitle } from '../../components/page-title.tsx'
import { Problem } from '../../components/problem.tsx'
import { matchesSearch } from './search.ts'
import { ServerCard } from './server-card.tsx'
import css from './servers-page.module.css'

export function ServersPage() {
  const { t } = useLingui()
  const { data: servers, error, refetch } = useServers()
  const may = useMay()
  const [search, setSearch] = useState('')
  const deferredSearch = useDeferredValue(search)
  const shown = servers?.filter((server) => matchesSearch(server, addressOf(server), deferredSearch))
  return (
    <div className="stack">
      <PageTitle title={t`Servers`}>
        {servers && servers.length > 1 && (
          <TextInput
            type="search"
            aria-label={t`Search servers`}
            placeholder={t`Search`}
            leftSection={<Icon name="search" size={16} />}
            value={search}
            onChange={(event) => setSearch(event.currentTarget.value)}
          />
        )}
        {servers && servers.length > 0 && may('servers:write') && (
          <Button component={Link} href="/servers/new" leftSection={<Icon name="plus" size={16} />}>
            <Trans>New server</Trans>
          </Button>
        )}
      </PageTitle>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {servers === undefined && !error && <CardSkeletons />}
      {servers?.length === 0 && <FirstServer />}
      {shown && shown.length > 0 && (
        <ul className={css.cards}>
          {shown.map((server) => (
            <ServerCard key={server.id} server={server} />
          ))}
        </ul>
      )}
      {servers && servers.length > 0 && shown?.length === 0 && (
        <Empty icon="search" title={t`No server matches`}>
          <Button variant="default" onClick={() => setSearch('')}>
            <Trans>Show all</Trans>
          </Button>
        </Empty>
      )}
    </div>
  )
}

function FirstServer() {
  const { t } = useLingui()
  const may = useMay()
  return (
    <div className="card">
      <Empty icon="play" title={t`Your first server is three clicks away`}>
        {may('servers:write') ? (
          <>
            <p>
              <Trans>
                Pick a game, give it a name, and watch it start. Its world is backed up whenever you say so.
              </Trans>
            </p>
            <Button component={Link} href="/servers/new" size="md" leftSection={<Icon name="plus" />}>
              <Trans>Pick a game</Trans>
            </Button>
          </>
        ) : (
          <p>
            <Trans>Nobody has shared a server with you yet. Ask whoever gave you access.</Trans>
          </p>
        )}
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
