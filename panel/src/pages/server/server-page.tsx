import { Trans, useLingui } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import { Suspense } from 'react'
import { Link, Route, Switch } from 'wouter'
import { isApiError, type Scope, type Server } from '../../../../src/sdk/index.ts'
import { useMay } from '../../api/access/session.ts'
import { addressOf, useServer, useTemplate } from '../../api/servers.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Empty } from '../../components/empty.tsx'
import { lazyPart } from '../../components/lazy-part.ts'
import { NotFound } from '../../components/not-found.tsx'
import { useDocumentTitle } from '../../components/page-title.tsx'
import { PowerButtons } from '../../components/power-buttons.tsx'
import { StateBadge } from '../../components/power-state.tsx'
import { Problem } from '../../components/problem.tsx'
import { type TabLink, TabLinks } from '../../components/tab-links.tsx'
import { DeletedServer } from './deleted-server.tsx'
import { OverviewTab } from './overview/overview-tab.tsx'
import css from './server-page.module.css'

const FilesTab = lazyPart(() => import('./files/files-tab.tsx'))
const BackupsTab = lazyPart(() => import('./backups/backups-tab.tsx'))
const NamesTab = lazyPart(() => import('./names/names-tab.tsx'))
const SettingsTab = lazyPart(() => import('./settings/settings-tab.tsx'))
const ActivityTab = lazyPart(() => import('./activity/activity-tab.tsx'))

export default function ServerPage({ serverId }: { serverId: string }) {
  const { t } = useLingui()
  const { data: server, error, refetch } = useServer(serverId)
  if (isApiError(error, 'not_found')) {
    return (
      <Empty icon="search" title={t`There is no such server`}>
        <p>
          <Trans>It was deleted, or nobody has shared it with you.</Trans>
        </p>
        <Link href="/">
          <Trans>To your servers</Trans>
        </Link>
      </Empty>
    )
  }
  if (!server) {
    return error ? <Problem error={error} onRetry={() => void refetch()} /> : <Skeleton height={320} radius="md" />
  }
  if (server.status !== 'ready') return <DeletedServer server={server} />
  return (
    <div className="stack">
      <Head server={server} />
      {error && <Problem error={error} />}
      <Suspense fallback={<Skeleton height={320} radius="md" />}>
        <Switch>
          <Route path="/servers/:serverId">
            <OverviewTab server={server} />
          </Route>
          <Route path="/servers/:serverId/files/*?">
            <FilesTab server={server} />
          </Route>
          <Route path="/servers/:serverId/backups">
            <BackupsTab server={server} />
          </Route>
          <Route path="/servers/:serverId/names">
            <NamesTab server={server} />
          </Route>
          <Route path="/servers/:serverId/activity">
            <ActivityTab server={server} />
          </Route>
          <Route path="/servers/:serverId/settings">
            <SettingsTab server={server} />
          </Route>
          <Route component={NotFound} />
        </Switch>
      </Suspense>
    </div>
  )
}

function Head({ server }: { server: Server }) {
  const { t } = useLingui()
  const address = addressOf(server)
  const { data: template } = useTemplate(server.game)
  useDocumentTitle(server.name)
  return (
    <div>
      <div className={css.head}>
        <div className="grow">
          <div className={css.name}>
            <h1 className="cut">{server.name}</h1>
            <StateBadge state={server.power.state} />
          </div>
          <p className={`soft ${css.facts}`}>
            <span className="cut">{template?.name ?? server.game ?? t`Own files`}</span>
            {address && (
              <span className={css.address}>
                <span className="mono cut">{address}</span>
                <CopyButton text={address} label={t`Copy the address`} />
              </span>
            )}
          </p>
        </div>
        <PowerButtons server={server} />
      </div>
      <Tabs serverId={server.id} />
    </div>
  )
}

function Tabs({ serverId }: { serverId: string }) {
  const { t } = useLingui()
  const may = useMay()
  const base = `/servers/${serverId}`
  const tabs: (TabLink & { scope: Scope })[] = [
    { href: base, scope: 'servers:read', icon: 'console', name: t`Overview` },
    { href: `${base}/files`, scope: 'files:read', icon: 'folder', name: t`Files` },
    { href: `${base}/backups`, scope: 'backups:read', icon: 'archive', name: t`Backups` },
    { href: `${base}/names`, scope: 'subdomains:read', icon: 'language', name: t`Names` },
    { href: `${base}/activity`, scope: 'activity:read', icon: 'activity', name: t`Activity` },
    { href: `${base}/settings`, scope: 'servers:read', icon: 'sliders', name: t`Settings` },
  ]
  // Overview is the first, and everybody who sees the server may open it.
  return <TabLinks label={t`Server`} tabs={tabs.filter(({ scope }) => may(scope))} />
}
