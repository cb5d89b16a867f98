import { msg } from '@lingui/core/macro'
import { Trans, useLingui } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import type { Readiness } from '../../../../../src/sdk/index.ts'
import { useReadiness } from '../../../api/instance.ts'
import { Icon } from '../../../components/icon.tsx'
import { Problem } from '../../../components/problem.tsx'
import css from './health-tab.module.css'

/** By the name of the check; one that a newer service has is shown by its own name. */
const CHECKS = {
  database: {
    name: msg`Database`,
    good: msg`It answers and takes what is written`,
    remedy: msg`Look whether the disk is full, or the database server runs. The log of the service says more.`,
  },
  dataDirectory: {
    name: msg`Data folder`,
    good: msg`It can be written to`,
    remedy: msg`Look whether the disk is full, read-only or gone. The log of the service says more.`,
  },
  backups: {
    name: msg`Backup store`,
    good: msg`It is there, and what was read of it is whole`,
    remedy: msg`Make new backups of what you need, then look at the store. The log of the service says more.`,
  },
  offsite: {
    name: msg`Off-site store`,
    good: msg`Backups are sent to it`,
    remedy: msg`See below what is still to be sent, and why it is not.`,
  },
} as const
const wordsOf = (check: string) => (Object.hasOwn(CHECKS, check) ? CHECKS[check as keyof typeof CHECKS] : null)

export function ReadinessCard() {
  const { data, error } = useReadiness()
  return (
    <section className={`card ${css.card}`}>
      <h2>
        <Heading readiness={error ? undefined : data} />
      </h2>
      {error && <Problem error={error} />}
      {!data && !error && <Skeleton height={110} />}
      {data && (
        <ul className={css.list}>
          {Object.entries({ ...data.checks, ...data.warnings }).map(([check, state]) => (
            <Check key={check} check={check} state={state} />
          ))}
        </ul>
      )}
    </section>
  )
}

function Heading({ readiness }: { readiness: Readiness | undefined }) {
  if (!readiness) return <Trans>Health</Trans>
  const hasWarnings = Object.keys(readiness.warnings).length > 0
  return readiness.ready && !hasWarnings ? (
    <Trans>Everything it needs is there</Trans>
  ) : (
    <Trans>Something needs you</Trans>
  )
}

function Check({ check, state }: { check: string; state: string }) {
  const { t } = useLingui()
  const words = wordsOf(check)
  const isGood = state === 'ok'
  return (
    <li className={css.item}>
      <span className={css.mark} data-bad={!isGood || undefined}>
        <Icon name={isGood ? 'check' : 'warning'} size={16} />
      </span>
      <div className="grow">
        <p>
          <strong>{words ? t(words.name) : check}</strong>
        </p>
        <p className="small soft">{isGood ? words && t(words.good) : state}</p>
        {!isGood && words && <p className="small">{t(words.remedy)}</p>}
      </div>
    </li>
  )
}
