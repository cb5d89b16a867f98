import { Trans, useLingui } from '@lingui/react/macro'
import { Route, Switch } from 'wouter'
import { useMay, useReachesAll } from '../../api/access/session.ts'
import { Empty } from '../../components/empty.tsx'
import { NotFound } from '../../components/not-found.tsx'
import { PageTitle } from '../../components/page-title.tsx'
import { TabLinks } from '../../components/tab-links.tsx'
import { HealthTab } from './health/health-tab.tsx'
import { TemplatesTab } from './templates/templates-tab.tsx'
import { TokensTab } from './tokens/tokens-tab.tsx'
import { ZonesTab } from './zones-tab.tsx'

export default function InstancePage() {
  const { t } = useLingui()
  const may = useMay()
  const reachesAll = useReachesAll()
  if (!reachesAll) {
    return (
      <Empty icon="gauge" title={t`This is for whoever runs the instance`}>
        <p>
          <Trans>Your access is to single servers.</Trans>
        </p>
      </Empty>
    )
  }
  return (
    <div className="stack">
      <div>
        <PageTitle title={t`Instance`} />
        <TabLinks
          label={t`Instance`}
          tabs={[
            { href: '/instance', icon: 'gauge', name: t`Health` },
            { href: '/instance/templates', icon: 'grid', name: t`Templates` },
            ...(may('subdomains:read') ? [{ href: '/instance/zones', icon: 'globe', name: t`Zones` } as const] : []),
            ...(may('tokens:admin') ? [{ href: '/instance/tokens', icon: 'key', name: t`Tokens` } as const] : []),
          ]}
        />
      </div>
      <Switch>
        <Route path="/instance" component={HealthTab} />
        <Route path="/instance/templates" component={TemplatesTab} />
        <Route path="/instance/zones" component={ZonesTab} />
        <Route path="/instance/tokens" component={TokensTab} />
        <Route component={NotFound} />
      </Switch>
    </div>
  )
}
