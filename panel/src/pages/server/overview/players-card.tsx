import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import type { Server } from '../../../../../src/sdk/index.ts'
import { usePlayers } from '../../../api/stats.ts'
import { Icon } from '../../../components/icon.tsx'
import css from './overview-tab.module.css'

/** Who plays; names are whatever players call themselves. */
export function PlayersCard({ server }: { server: Server }) {
  const { t } = useLingui()
  const { data, error } = usePlayers(server)
  if (server.power.state !== 'running') return null
  // A service that cannot be asked says so elsewhere on the page.
  if (!data) return error ? null : <Skeleton height={80} radius="md" />
  const { online, max, players, reason } = data
  if (reason === 'not_supported') return null
  const unnamed = online !== null && players !== null ? online - players.length : 0
  return (
    <section className={`card ${css.players}`} aria-label={t`Players online`}>
      <h2 className={css.cardTitle}>
        <Icon name="users" size={16} />
        <span className="grow">
          <Trans>Players</Trans>
        </span>
        {online !== null && <span className={css.count}>{max === null ? online : `${online} / ${max}`}</span>}
      </h2>
      {online === null && (
        <p className="small soft">
          <Trans>The game does not answer right now.</Trans>
        </p>
      )}
      {online === 0 && (
        <p className="small soft">
          <Trans>Nobody plays right now.</Trans>
        </p>
      )}
      {players && players.length > 0 && (
        <ul className={css.names}>
          {players.map(({ name }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two may have the same name
            <li key={`${name} ${index}`} className="cut" title={name}>
              <bdi>{name}</bdi>
            </li>
          ))}
        </ul>
      )}
      {unnamed > 0 && players && players.length > 0 && (
        <p className="small soft">
          <Plural value={unnamed} one="and # more" other="and # more" />
        </p>
      )}
    </section>
  )
}
