import { Trans } from '@lingui/react/macro'
import { useMay } from '../../../api/access/session.ts'
import { DiskCard } from './disk-card.tsx'
import css from './health-tab.module.css'
import { OffsiteCard } from './offsite-card.tsx'
import { ProblemsCard } from './problems-card.tsx'
import { ReadinessCard } from './readiness-card.tsx'

export function HealthTab() {
  const version = __VERSION__
  const may = useMay()
  return (
    <div className="stack">
      <div className={css.columns}>
        <ReadinessCard />
        <DiskCard />
      </div>
      {may('*') && <OffsiteCard />}
      {may('activity:read') && <ProblemsCard />}
      <p className="small faint">
        <Trans>
          Gamekeeper {version} · <a href="/docs">API reference</a>
        </Trans>
      </p>
    </div>
  )
}
