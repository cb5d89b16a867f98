import { Trans } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import { lazy, Suspense } from 'react'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/session.ts'
import { FactsCard } from './facts-card.tsx'
import { LastExit } from './last-exit.tsx'
import css from './overview-tab.module.css'

// The terminal is the heaviest part of the panel.
const Console = lazy(() => import('./console.tsx'))

export function OverviewTab({ server }: { server: Server }) {
  const may = useMay()
  const { power } = server
  return (
    <div className={css.overview}>
      <div className="stack grow">
        {power.step && (
          <p className={css.step} role="status">
            {power.step}
          </p>
        )}
        <LastExit server={server} />
        {may('console:read') ? (
          <Suspense fallback={<Skeleton height={420} radius="md" />}>
            <Console server={server} />
          </Suspense>
        ) : (
          <p className="soft">
            <Trans>You may not read the console of this server.</Trans>
          </p>
        )}
      </div>
      <FactsCard server={server} />
    </div>
  )
}
