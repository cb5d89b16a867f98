import { msg } from '@lingui/core/macro'
import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useState } from 'react'
import { Link } from 'wouter'
import type { ActivityEntry } from '../../../../../src/sdk/index.ts'
import { useProblems } from '../../../api/instance.ts'
import type { ProblemEvent } from '../../../api/live/problem-watch.ts'
import { useServers } from '../../../api/servers.ts'
import { Icon } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import { Problem } from '../../../components/problem.tsx'
import css from './health-tab.module.css'

const SHOWN_AT_FIRST = 8

/** What happened, and what to do about it on which tab of the server. */
const WORDS = {
  'game.crashed': { text: msg`The game crashed`, remedy: msg`Its console shows the last lines`, tab: '' },
  'game.over_quota': {
    text: msg`The game was stopped: its disk quota is exceeded`,
    remedy: msg`Delete files, or raise its limit`,
    tab: '/files',
  },
  'backup.failed': { text: msg`A backup failed`, remedy: msg`Make another`, tab: '/backups' },
  'backup.damage_found': { text: msg`A backup is damaged`, remedy: msg`Make a new one now`, tab: '/backups' },
  'backup.lost': { text: msg`A backup is gone from the store`, remedy: msg`Make a new one now`, tab: '/backups' },
  'backup.offsite_failed': {
    text: msg`Backups could not be sent to the off-site store`,
    remedy: msg`It is tried again by itself; the off-site store above says how it stands`,
    tab: '/backups',
  },
  'offsite.removal_held': {
    text: msg`Most of the off-site store would have been removed, so nothing was`,
    remedy: msg`Confirm it at the off-site store above, or look for what is missing here`,
    tab: '',
  },
  'backup.rehearsal_failed': {
    text: msg`The game did not come up from a backup`,
    remedy: msg`Read what it wrote, and keep an older backup`,
    tab: '/backups',
  },
  'backup.restore_failed': {
    text: msg`A restore failed; the files are as they were`,
    remedy: msg`Try another backup`,
    tab: '/backups',
  },
  'backup.restore_unfinished': {
    text: msg`A restore stopped in the middle`,
    remedy: msg`Finish it, or take it back`,
    tab: '/backups',
  },
  'schedule.failed': {
    text: msg`A schedule could not do its work`,
    remedy: msg`Look at the reason in its activity`,
    tab: '/activity',
  },
  'job.failed': { text: msg`A job failed`, remedy: msg`Look at the reason in its activity`, tab: '/activity' },
  'subdomain.provider_failed': {
    text: msg`The DNS provider did not do what it was asked`,
    remedy: msg`It is tried again; look at the zone`,
    tab: '/activity',
  },
} as const satisfies Record<ProblemEvent, { text: unknown; remedy: unknown; tab: string }>

export function ProblemsCard() {
  const { data: problems, error, refetch } = useProblems()
  const [isAll, setAll] = useState(false)
  return (
    <section className={`card ${css.card}`}>
      <h2>
        <Trans>Problems of the last seven days</Trans>
      </h2>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!problems && !error && <Skeleton height={80} />}
      {problems?.length === 0 && (
        <p className="soft">
          <Trans>None. No game crashed, and no backup failed.</Trans>
        </p>
      )}
      {problems && problems.length > 0 && (
        <ul className={css.list}>
          {problems.slice(0, isAll ? undefined : SHOWN_AT_FIRST).map((entry) => (
            <ProblemRow key={entry.id} entry={entry} />
          ))}
        </ul>
      )}
      {problems && problems.length > SHOWN_AT_FIRST && !isAll && (
        <div>
          <Button variant="default" size="xs" onClick={() => setAll(true)}>
            <Trans>Show all</Trans>
          </Button>
        </div>
      )}
    </section>
  )
}

function ProblemRow({ entry: { event, serverId, properties, timestamp } }: { entry: ActivityEntry }) {
  const { t } = useLingui()
  const { data: servers = [] } = useServers()
  const words = WORDS[event as ProblemEvent]
  const server = servers.find(({ id }) => id === serverId)
  const reason = reasonIn(properties)
  return (
    <li className={css.item}>
      <span className={css.mark} data-warn>
        <Icon name="warning" size={16} />
      </span>
      <div className="grow">
        <p>
          {server && (
            <>
              <Link href={`/servers/${server.id}${words.tab}`}>{server.name}</Link>
              {': '}
            </>
          )}
          {t(words.text)}
        </p>
        {reason && <p className="small soft">{reason}</p>}
        <p className="small soft">{t(words.remedy)}.</p>
      </div>
      <span className={`small faint ${css.when}`}>
        <Moment at={timestamp} />
      </span>
    </li>
  )
}

/** Where the entry has one, in the words of the service. */
function reasonIn(properties: ActivityEntry['properties']): string | null {
  for (const value of [properties.error, properties.reason, properties]) {
    if (typeof value === 'string' && value.includes(' ')) return value
    const { detail } = (value ?? {}) as { detail?: unknown }
    if (typeof detail === 'string') return detail
  }
  return null
}
