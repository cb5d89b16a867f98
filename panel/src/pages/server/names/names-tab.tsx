import { Trans, useLingui } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { useSubdomains, useZones } from '../../../api/subdomains.ts'
import { Empty } from '../../../components/empty.tsx'
import { Problem } from '../../../components/problem.tsx'
import { NameForm } from './name-form.tsx'
import { NameRow } from './name-row.tsx'
import css from './names-tab.module.css'

export default function NamesTab({ server }: { server: Server }) {
  const { t } = useLingui()
  const may = useMay()
  const zones = useZones(server.id)
  const subdomains = useSubdomains(server.id)
  const mayChange = may('subdomains:write')
  const error = zones.error ?? subdomains.error
  const retry = () => {
    void zones.refetch()
    void subdomains.refetch()
  }
  if (!zones.data || !subdomains.data) {
    return error ? <Problem error={error} onRetry={retry} /> : <Skeleton height={200} radius="md" />
  }
  const hasZones = zones.data.length > 0
  return (
    <div className="stack">
      {error && <Problem error={error} onRetry={retry} />}
      {hasZones && mayChange && <NameForm server={server} zones={zones.data} subdomains={subdomains.data} />}
      {!hasZones && <NoZones />}
      {hasZones && subdomains.data.length === 0 && (
        <Empty icon="language" title={t`No name yet`}>
          <p>
            {mayChange ? (
              <Trans>Choose one above. Players type it in the game, and need no port where the game looks it up.</Trans>
            ) : (
              <Trans>You may look at the names of this server, not add one.</Trans>
            )}
          </p>
        </Empty>
      )}
      {subdomains.data.length > 0 && (
        <ul className={`card ${css.items}`}>
          {subdomains.data.map((subdomain) => (
            <NameRow key={subdomain.id} server={server} subdomain={subdomain} mayChange={mayChange} />
          ))}
        </ul>
      )}
    </div>
  )
}

const EXAMPLE = '[{"zone": "play.example.org", "provider": "embedded", "target": "203.0.113.7"}]'

function NoZones() {
  const { t } = useLingui()
  return (
    <Empty icon="language" title={t`No zone is set up yet`}>
      <p>
        <Trans>
          Names lie in a zone, such as play.example.org. Whoever runs this service sets <code>GAMEKEEPER_ZONES</code>{' '}
          and starts it again, for example with:
        </Trans>
      </p>
      <pre className={`mono small ${css.example}`}>{EXAMPLE}</pre>
      <p>
        <Trans>
          <code>docs/subdomains.md</code> has every provider: the name server that is built in, PowerDNS, RFC 2136 and
          Cloudflare.
        </Trans>
      </p>
    </Empty>
  )
}
