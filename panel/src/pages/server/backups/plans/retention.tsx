import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { RetentionPolicy, Server } from '../../../../../../src/sdk/index.ts'
import { useMay } from '../../../../api/access/session.ts'
import { useRetention, useRetentionActions } from '../../../../api/backup-plans.ts'
import { useAllBackups } from '../../../../api/backups.ts'
import { Confirm } from '../../../../components/confirm.tsx'
import { Problem } from '../../../../components/problem.tsx'
import { showFailure, showToast } from '../../../../components/toasts.tsx'
import { previewOf } from './kept.ts'
import { KeptCalendar } from './kept-calendar.tsx'
import css from './plans.module.css'

export function Retention({ server }: { server: Server }) {
  const { t } = useLingui()
  const { data, error, refetch } = useRetention(server.id)
  return (
    <section className={`card ${css.plan}`} aria-label={t`Retention`}>
      <h2>
        <Trans>Which backups are kept</Trans>
      </h2>
      <p className="soft">
        <Trans>
          A backup is kept if any of these rules keeps it. Locked ones always are. Without a rule all are kept. The
          rules are applied after each backup that succeeded, never before.
        </Trans>
      </p>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton height={80} />}
      {data && <RetentionForm key={JSON.stringify(data)} server={server} saved={data} />}
    </section>
  )
}

const RULES = ['keepLast', 'keepHourly', 'keepDaily', 'keepWeekly', 'keepMonthly'] as const
const MOST = 10_000

function RetentionForm({ server, saved }: { server: Server; saved: RetentionPolicy }) {
  const { t } = useLingui()
  const mayWrite = useMay()('backups:write')
  const { save } = useRetentionActions(server.id)
  const [policy, setPolicy] = useState(saved)
  const isChanged = RULES.some((rule) => policy[rule] !== saved[rule])
  const labels = {
    keepLast: t`Newest`,
    keepHourly: t`Hours`,
    keepDaily: t`Days`,
    keepWeekly: t`Weeks`,
    keepMonthly: t`Months`,
  }
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault()
        save.mutate(policy, { onSuccess: () => showToast(t`The rules are saved.`) })
      }}
    >
      <div className={css.rules}>
        {RULES.map((rule) => (
          <TextInput
            key={rule}
            type="number"
            min={1}
            max={MOST}
            label={labels[rule]}
            placeholder="–"
            disabled={!mayWrite}
            value={policy[rule] ?? ''}
            onChange={(event) => setPolicy({ ...policy, [rule]: numberIn(event.currentTarget.value) })}
          />
        ))}
      </div>
      <p className="small faint">
        <Trans>
          Of each hour, day, week and month the newest backup counts. Days begin at midnight UTC, weeks on Monday.
        </Trans>
      </p>
      {save.error && <Problem error={save.error} />}
      <Preview server={server} policy={policy} isChanged={isChanged} />
      {mayWrite && isChanged && (
        <div className="row">
          <Button type="submit" loading={save.isPending}>
            <Trans>Save the rules</Trans>
          </Button>
          <Button variant="default" onClick={() => setPolicy(saved)}>
            <Trans>Discard</Trans>
          </Button>
        </div>
      )}
    </form>
  )
}

function numberIn(text: string): number | null {
  const count = Math.trunc(Number(text))
  return text === '' || !(count >= 1) ? null : Math.min(count, MOST)
}

interface PreviewProps {
  server: Server
  policy: RetentionPolicy
  isChanged: boolean
}

function Preview({ server, policy, isChanged }: PreviewProps) {
  const { t } = useLingui()
  const mayWrite = useMay()('backups:write')
  const { data: backups } = useAllBackups(server.id)
  const { apply } = useRetentionActions(server.id)
  const [isAsking, setAsking] = useState(false)
  if (!backups) return <Skeleton height={120} />
  const fates = previewOf(backups, policy)
  const going = fates.filter(({ isKept }) => !isKept).length
  if (fates.length === 0) return null
  const applyNow = () =>
    apply.mutate(undefined, {
      onSuccess: ({ expired }) => showToast(t`${expired.length} backups were deleted.`),
      onError: (error) => showFailure(t`The rules could not be applied`, error),
    })
  return (
    <div className="stack">
      <p>
        <Plural value={fates.length - going} one="# backup stays" other="# backups stay" />,{' '}
        <Plural value={going} one="# goes with the next backup." other="# go with the next backup." />
      </p>
      <KeptCalendar fates={fates} />
      {mayWrite && going > 0 && !isChanged && (
        <div>
          <Button variant="default" color="red" loading={apply.isPending} onClick={() => setAsking(true)}>
            <Trans>Delete them now</Trans>
          </Button>
        </div>
      )}
      <Confirm
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        onConfirm={applyNow}
        title={t`Delete what the rules do not keep?`}
        text={t`About ${going} backups are gone for good. What restores took for safety has its own rule and may stay.`}
        action={t`Delete`}
      />
    </div>
  )
}
