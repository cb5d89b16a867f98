import { useLingui } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import { Suspense } from 'react'
import { Link, useSearchParams } from 'wouter'
import type { Server } from '../../../../../src/sdk/index.ts'
import { lazyPart } from '../../../components/lazy-part.ts'
import { JobStrip } from '../jobs/job-strip.tsx'
import { addressOfBackups } from './addresses.ts'
import css from './backups-tab.module.css'
import { Timeline } from './timeline.tsx'
import { UnfinishedRestore } from './unfinished-restore.tsx'

const BackupInside = lazyPart(() => import('./inside/backup-inside.tsx'))
const Comparison = lazyPart(() => import('./compare/comparison.tsx'))
const Plans = lazyPart(() => import('./plans/plans.tsx'))

const KINDS = ['restore', 'restore.finish', 'verify', 'rehearse']

export default function BackupsTab({ server }: { server: Server }) {
  return (
    <div className="stack">
      <UnfinishedRestore server={server} />
      <Suspense fallback={<Skeleton height={320} radius="md" />}>
        <View server={server} />
      </Suspense>
    </div>
  )
}

/** What is looked at is in the address, so that it can be bookmarked and gone back from. */
function View({ server }: { server: Server }) {
  const { t } = useLingui()
  const [search] = useSearchParams()
  const inside = search.get('inside')
  const from = search.get('from')
  const isPlan = search.get('show') === 'plan'
  if (inside !== null) {
    return <BackupInside key={inside} server={server} backupId={inside} path={search.get('path') ?? '/'} />
  }
  if (from !== null) return <Comparison server={server} from={from} to={search.get('to')} />
  return (
    <>
      <nav className={css.views} aria-label={t`Backups`}>
        <Link href={addressOfBackups(server.id)} aria-current={isPlan ? undefined : 'page'}>{t`Time line`}</Link>
        <Link
          href={addressOfBackups(server.id, { show: 'plan' })}
          aria-current={isPlan ? 'page' : undefined}
        >{t`Schedules and retention`}</Link>
      </nav>
      <JobStrip serverId={server.id} kinds={KINDS} />
      {isPlan ? <Plans server={server} /> : <Timeline server={server} />}
    </>
  )
}
