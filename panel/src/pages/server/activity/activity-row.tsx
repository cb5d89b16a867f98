import { useLingui } from '@lingui/react/macro'
import type { ActivityEntry } from '../../../../../src/sdk/index.ts'
import { Icon, type IconName } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import css from './activity-tab.module.css'
import { sentenceOf } from './sentences.ts'
import { subjectOf } from './subject.ts'

const ICONS: Record<string, IconName> = {
  server: 'server',
  power: 'play',
  game: 'play',
  console: 'console',
  access: 'lock',
  token: 'key',
  file: 'file',
  subdomain: 'language',
  backup: 'archive',
  retention: 'archive',
  schedule: 'archive',
  job: 'activity',
}

export function ActivityRow({ entry }: { entry: ActivityEntry }) {
  const { t } = useLingui()
  const [area = ''] = entry.event.split('.')
  const sentence = sentenceOf(entry)
  const subject = entry.event === 'power.requested' ? null : subjectOf(entry)
  return (
    <li className={css.entry}>
      <span className={css.icon}>
        <Icon name={ICONS[area] ?? 'activity'} size={16} />
      </span>
      <details className="grow">
        <summary className={css.summary}>
          <span className="grow">
            <strong>{entry.actor.name}</strong> {sentence ? t(sentence) : entry.event}{' '}
            {subject && <span className={`mono ${css.subject}`}>{subject}</span>}
          </span>
          <span className={`small faint ${css.when}`}>
            <Moment at={entry.timestamp} />
          </span>
        </summary>
        <Details entry={entry} />
      </details>
    </li>
  )
}

function Details({ entry }: { entry: ActivityEntry }) {
  const { t } = useLingui()
  const facts = [
    [t`Event`, entry.event],
    [t`Who`, entry.actor.id === null ? entry.actor.type : `${entry.actor.type} ${entry.actor.id}`],
    [t`By way of`, entry.source],
    [t`Address`, entry.ip],
    [t`Program`, entry.userAgent],
    [t`Request`, entry.requestId],
    [t`Details`, Object.keys(entry.properties).length > 0 ? JSON.stringify(entry.properties, null, 2) : null],
  ] as const
  return (
    <dl className={css.details}>
      {facts.map(
        ([name, value]) =>
          value !== null && (
            <div key={name}>
              <dt>{name}</dt>
              <dd className="mono">{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}
