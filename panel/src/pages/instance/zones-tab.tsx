import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import type { DnsFinding, ZoneInfo } from '../../../../src/sdk/index.ts'
import { useMay } from '../../api/access/session.ts'
import { useDnsCheck, useDnsRepair, useZones } from '../../api/instance.ts'
import { useServers } from '../../api/servers.ts'
import { Empty } from '../../components/empty.tsx'
import { Icon } from '../../components/icon.tsx'
import { Problem } from '../../components/problem.tsx'
import { showFailure } from '../../components/toasts.tsx'
import css from './health/health-tab.module.css'

export function ZonesTab() {
  const { t } = useLingui()
  const may = useMay()
  const { data: servers } = useServers()
  const { data: zones, error } = useZones(servers?.[0]?.id)
  const check = useDnsCheck(may('subdomains:write') && zones !== undefined && zones.length > 0)
  if (error) return <Problem error={error} />
  if (servers?.length === 0) {
    return (
      <Empty icon="globe" title={t`There is no server yet`}>
        <p>
          <Trans>Zones are shown as soon as there is a server that can have a name in them.</Trans>
        </p>
      </Empty>
    )
  }
  if (!zones) return <Skeleton height={160} radius="md" />
  if (zones.length === 0) return <NoZones />
  return (
    <div className="stack">
      {check.error && <Problem error={check.error} onRetry={() => void check.refetch()} />}
      {zones.map((zone) => (
        <Zone
          key={zone.zone}
          zone={zone}
          findings={check.data?.findings.filter((finding) => finding.zone === zone.zone) ?? null}
        />
      ))}
      {check.data && <ZoneActions onCheck={() => void check.refetch()} isChecking={check.isFetching} />}
    </div>
  )
}

function NoZones() {
  const { t } = useLingui()
  return (
    <Empty icon="globe" title={t`No zone is set up`}>
      <p>
        <Trans>
          With a zone, players type a name such as <span className="mono">castle.play.example.org</span>. Zones are set
          by <span className="mono">GAMEKEEPER_ZONES</span>; docs/dns.md shows how.
        </Trans>
      </p>
    </Empty>
  )
}

function Zone({ zone, findings }: { zone: ZoneInfo; findings: DnsFinding[] | null }) {
  const open = findings?.filter(({ repaired }) => !repaired) ?? []
  return (
    <section className={`card ${css.card}`}>
      <div className={css.item}>
        <span className={css.mark} data-bad={open.length > 0 || undefined}>
          <Icon name={open.length > 0 ? 'warning' : 'globe'} size={16} />
        </span>
        <div className="grow">
          <h2>{zone.zone}</h2>
          <p className="small soft">
            {zone.provider} · TTL {zone.ttl} s · {zone.targets.join(', ')}
          </p>
          <p className="small">
            {findings === null ? (
              <Trans>Checking…</Trans>
            ) : open.length === 0 ? (
              <Trans>DNS holds what it should.</Trans>
            ) : (
              <Plural
                value={open.length}
                one="# record is not as it should be"
                other="# records are not as they should be"
              />
            )}
          </p>
        </div>
      </div>
      {findings && findings.length > 0 && (
        <ul className={css.list}>
          {findings.map((finding) => (
            <li key={`${finding.hostname} ${finding.kind} ${finding.detail}`} className="small">
              <span className="mono">{finding.hostname}</span> {finding.detail}{' '}
              {finding.repaired && (
                <span className="soft">
                  <Trans>It is right again.</Trans>
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function ZoneActions({ onCheck, isChecking }: { onCheck: () => void; isChecking: boolean }) {
  const { t } = useLingui()
  const repair = useDnsRepair()
  const run = () => repair.mutate(undefined, { onError: (error) => showFailure(t`DNS could not be repaired`, error) })
  return (
    <div className="row">
      <Button variant="default" loading={isChecking} onClick={onCheck}>
        <Trans>Check again</Trans>
      </Button>
      <Button variant="default" loading={repair.isPending} onClick={run}>
        <Trans>Repair</Trans>
      </Button>
    </div>
  )
}
