import { Trans, useLingui } from '@lingui/react/macro'
import { Checkbox, Progress } from '@mantine/core'
import { useInViewport } from '@mantine/hooks'
import { Link } from 'wouter'
import type { Server } from '../../../../src/sdk/index.ts'
import { addressOf, useGameName } from '../../api/servers.ts'
import { useUsage } from '../../api/usage.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Moment } from '../../components/moment.tsx'
import { PowerButtons } from '../../components/power-buttons.tsx'
import { StateBadge } from '../../components/power-state.tsx'
import { useDiskWords } from './disk-words.ts'
import type { Selection } from './selection.ts'
import css from './server-card.module.css'
import { useUsageWords } from './usage-words.ts'

export function ServerCard({ server, selection }: { server: Server; selection: Selection | null }) {
  const { t } = useLingui()
  const { ref, inViewport } = useInViewport<HTMLLIElement>()
  const address = addressOf(server)
  const game = useGameName(server)
  const { power } = server
  return (
    <li ref={ref} className={`card ${css.card}`} data-chosen={selection?.has(server.id) || undefined}>
      <div className={css.head}>
        {selection && (
          <Checkbox
            className={css.choose}
            aria-label={t`Choose ${server.name}`}
            checked={selection.has(server.id)}
            onChange={() => selection.toggle(server.id)}
          />
        )}
        <div className="grow">
          <Link href={`/servers/${server.id}`} className={`${css.name} cut`}>
            {server.name}
          </Link>
          <p className="small faint cut">{game ?? <Trans>Own files</Trans>}</p>
        </div>
        <StateBadge state={power.state} />
      </div>
      {address ? (
        <p className={css.address}>
          <span className="mono cut">{address}</span>
          <CopyButton text={address} label={t`Copy the address`} />
        </p>
      ) : (
        <p className={`${css.address} faint small`}>
          <Trans>No port yet</Trans>
        </p>
      )}
      <Facts server={server} isSeen={inViewport} />
      <div className={css.foot}>
        <span className="small faint cut">{power.step ?? (power.since && <Moment at={power.since} />)}</span>
        <PowerButtons server={server} isCompact />
      </div>
    </li>
  )
}

function Facts({ server, isSeen }: { server: Server; isSeen: boolean }) {
  const { t } = useLingui()
  const words = useUsageWords(useUsage(server, isSeen))
  const disk = useDiskWords(server, isSeen)
  const facts = [
    [t`Players`, words.players],
    [t`CPU`, words.cpu],
    [t`Memory`, words.memory],
    [t`Disk`, disk?.text ?? '–'],
  ] as const
  return (
    <div>
      <dl className={css.facts}>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {disk && (
        <p className={`small faint cut ${css.measured}`}>
          <Trans>
            Disk measured <Moment at={disk.at} />
          </Trans>
        </p>
      )}
      {disk?.percent != null && (
        <Progress value={disk.percent} size="xs" color={disk.isFull ? 'red' : 'moss'} aria-label={t`Disk`} />
      )}
    </div>
  )
}
