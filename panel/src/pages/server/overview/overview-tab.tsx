import { Trans } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import { Suspense, useState } from 'react'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { lazyPart } from '../../../components/lazy-part.ts'
import { JobStrip } from '../jobs/job-strip.tsx'
import { FactsCard } from './facts-card.tsx'
import { FailedSetup } from './failed-setup.tsx'
import { LastExit } from './last-exit.tsx'
import css from './overview-tab.module.css'
import { PlayersCard } from './players-card.tsx'
import { PowerStep } from './power-step.tsx'

// The terminal and the charts are the heaviest parts of the panel.
const Console = lazyPart(() => import('./console.tsx'))
const Charts = lazyPart(() => import('./charts.tsx'))

const KINDS = ['install', 'start']

export function OverviewTab({ server }: { server: Server }) {
  const may = useMay()
  const mayRead = may('console:read')
  /** The line of the console that somebody wants to see; a new object each time they ask. */
  const [wanted, setWanted] = useState<{ line: number } | null>(null)
  return (
    <div className={css.overview}>
      <div className="stack grow">
        <PowerStep server={server} />
        <JobStrip serverId={server.id} kinds={KINDS} />
        <FailedSetup server={server} kinds={KINDS} />
        <LastExit server={server} onJump={mayRead ? (line) => setWanted({ line }) : null} />
        {mayRead ? (
          <Suspense fallback={<Skeleton height={420} radius="md" />}>
            <Console server={server} wanted={wanted} />
          </Suspense>
        ) : (
          <p className="soft">
            <Trans>You may not read the console of this server.</Trans>
          </p>
        )}
        <FactsCard server={server} />
      </div>
      <div className={css.side}>
        <PlayersCard server={server} />
        <Suspense fallback={<Skeleton height={320} radius="md" />}>
          <Charts server={server} />
        </Suspense>
      </div>
    </div>
  )
}
