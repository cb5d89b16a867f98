import { Trans, useLingui } from '@lingui/react/macro'
import type { ReactNode } from 'react'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useDiskUse } from '../../../api/usage.ts'
import { Moment } from '../../../components/moment.tsx'
import { formatBytes } from '../../../i18n/format.ts'
import css from './overview-tab.module.css'

export function FactsCard({ server }: { server: Server }) {
  const { t, i18n } = useLingui()
  const { power, limits, runtime } = server
  const disk = useDiskUse(server)
  const bytes = (count: number) => formatBytes(count, i18n.locale)
  return (
    <dl className={`card ${css.facts}`}>
      {power.since && (
        <Fact name={t`Since`}>
          <Moment at={power.since} />
        </Fact>
      )}
      <Fact name={t`Disk`}>
        {disk === null ? <Trans>not measured yet</Trans> : bytes(disk.bytes)}
        {limits.diskBytes !== null && (
          <span className="faint">
            {' '}
            <Trans>of {bytes(limits.diskBytes)}</Trans>
          </span>
        )}
        {disk && (
          <span className="faint">
            {', '}
            <Moment at={disk.at} />
          </span>
        )}
      </Fact>
      <Fact name={t`Memory limit`}>
        {limits.memoryBytes === null ? <Trans>none</Trans> : bytes(limits.memoryBytes)}
      </Fact>
      <Fact name={t`After a crash`}>
        {server.autoRestart ? <Trans>starts again by itself</Trans> : <Trans>stays down</Trans>}
      </Fact>
      {runtime && (
        <Fact name={t`Runs`}>
          {runtime.isolation === 'none' ? (
            <Trans>without isolation</Trans>
          ) : (
            <Trans>isolated from everything else</Trans>
          )}
        </Fact>
      )}
      <Fact name={t`Created`}>
        <Moment at={server.createdAt} />
      </Fact>
    </dl>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
