import { msg } from '@lingui/core/macro'
import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Button, Progress, Skeleton } from '@mantine/core'
import { useState } from 'react'
import type { Offsite } from '../../../../../src/sdk/index.ts'
import { useOffsite, useOffsiteActions } from '../../../api/instance.ts'
import { Confirm } from '../../../components/confirm.tsx'
import { Icon } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import { Problem } from '../../../components/problem.tsx'
import { showFailure } from '../../../components/toasts.tsx'
import { formatBytes } from '../../../i18n/format.ts'
import css from './health-tab.module.css'

/** Whether backups are somewhere else too, what is still on its way, and what somebody has to decide. */
export function OffsiteCard() {
  const { data, error, refetch } = useOffsite()
  return (
    <section className={`card ${css.card}`}>
      <h2>
        <Trans>Off-site store</Trans>
      </h2>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton height={80} />}
      {data && (data.place === null ? <None /> : <State offsite={data} />)}
    </section>
  )
}

function None() {
  return (
    <p className="soft">
      <Trans>
        None is set up: backups are on this machine only. With <span className="mono">GAMEKEEPER_OFFSITE</span> each is
        sent to a bucket of any S3 provider too; docs/offsite.md shows how.
      </Trans>
    </p>
  )
}

function State({ offsite }: { offsite: Offsite }) {
  const { place, problem, isReachable, lastRun, surplus } = offsite
  const isTaken = lastRun?.error?.code === 'offsite_taken'
  return (
    <>
      <div className={css.item}>
        <span className={css.mark} data-bad={problem !== null || undefined}>
          <Icon name={problem === null ? 'check' : 'warning'} size={16} />
        </span>
        <div className="grow">
          <p className="mono">{place}</p>
          {problem !== null && <p>{problem}</p>}
          {isReachable === false && problem === null && (
            <p className="small soft">
              <Trans>It did not answer when it was asked last.</Trans>
            </p>
          )}
          <Pending offsite={offsite} />
          <Holdings offsite={offsite} />
        </div>
      </div>
      {isTaken && <Claim />}
      {surplus && <Surplus surplus={surplus} />}
    </>
  )
}

function Pending({ offsite }: { offsite: Offsite }) {
  const { t, i18n } = useLingui()
  const { pendingBackups, pendingBytes, oldestPendingAt, activity, progress, nextRunAt } = offsite
  const bytes = formatBytes(pendingBytes, i18n.locale)
  const { bytesDone = 0, bytesTotal = null } = progress ?? {}
  return (
    <>
      <p className="small">
        {pendingBackups === 0 ? (
          <Trans>Every backup is there.</Trans>
        ) : (
          <Trans>
            <Plural value={pendingBackups} one="# backup is" other="# backups are" /> still to be sent, {bytes}.
          </Trans>
        )}{' '}
        {oldestPendingAt !== null && (
          <Trans>
            The oldest was made <Moment at={oldestPendingAt} />.
          </Trans>
        )}{' '}
        {activity === 'waiting' && nextRunAt !== null && (
          <Trans>
            It is tried again <Moment at={nextRunAt} />.
          </Trans>
        )}
      </p>
      {activity === 'sending' && (
        <Progress
          value={bytesTotal ? Math.min(100, (100 * bytesDone) / bytesTotal) : 100}
          animated
          size="sm"
          aria-label={t`Sending backups`}
        />
      )}
    </>
  )
}

function Holdings({ offsite: { mirror, lastRun, isAppendOnly } }: { offsite: Offsite }) {
  const { i18n } = useLingui()
  const size = (bytes: number) => formatBytes(bytes, i18n.locale)
  return (
    <p className="small soft">
      {mirror && (
        <Trans>
          It holds <Plural value={mirror.backups} one="# backup" other="# backups" />, {size(mirror.bytes)}.
        </Trans>
      )}{' '}
      {lastRun && (
        <Trans>
          Last looked at <Moment at={lastRun.endedAt} />, {size(lastRun.sentBytes)} sent.
        </Trans>
      )}{' '}
      {isAppendOnly && <Trans>Nothing is ever removed from it.</Trans>}
    </p>
  )
}

function Claim() {
  const { t } = useLingui()
  const [isAsking, setAsking] = useState(false)
  const { claim } = useOffsiteActions()
  const run = () => claim.mutate(undefined, { onError: (error) => showFailure(t`It could not be taken over`, error) })
  return (
    <div>
      <Button variant="default" size="xs" loading={claim.isPending} onClick={() => setAsking(true)}>
        <Trans>Take it over</Trans>
      </Button>
      <Confirm
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        onConfirm={run}
        title={t`Take the off-site store over?`}
        text={t`Only if the other service is gone: from then on it sends nothing there any more, and this one removes what it does not have itself.`}
        action={t`Take it over`}
      />
    </div>
  )
}

const REASONS = {
  append_only: msg`nothing is ever removed from it`,
  shrinks: msg`less than half of it would be left, so nothing is removed until you confirm it`,
  store_incomplete: msg`the disk lacks backups that nobody has deleted, so nothing is removed until you confirm it`,
} as const satisfies Record<NonNullable<Offsite['surplus']>['reason'], unknown>

function Surplus({ surplus }: { surplus: NonNullable<Offsite['surplus']> }) {
  const { t, i18n } = useLingui()
  const [isAsking, setAsking] = useState(false)
  const { prune } = useOffsiteActions()
  const size = formatBytes(surplus.bytes, i18n.locale)
  const run = () =>
    prune.mutate(surplus.bytes, { onError: (error) => showFailure(t`It could not be confirmed`, error) })
  return (
    <div className="stack">
      <p className="small">
        <Trans>
          It has <Plural value={surplus.backups} one="# backup" other="# backups" />, {size}, that this machine no
          longer has:
        </Trans>{' '}
        {t(REASONS[surplus.reason])}.
      </p>
      {surplus.reason !== 'append_only' && (
        <div>
          <Button variant="default" size="xs" loading={prune.isPending} onClick={() => setAsking(true)}>
            <Trans>Remove it there too</Trans>
          </Button>
        </div>
      )}
      <Confirm
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        onConfirm={run}
        title={t`Remove ${size} from the off-site store?`}
        text={t`It is gone for good there, and it is not on this machine either.`}
        action={t`Remove it`}
      />
    </div>
  )
}
