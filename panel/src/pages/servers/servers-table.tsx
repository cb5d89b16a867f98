import { Trans, useLingui } from '@lingui/react/macro'
import { Checkbox } from '@mantine/core'
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
import css from './servers-table.module.css'
import { useUsageWords } from './usage-words.ts'

export function ServersTable({ servers, selection }: { servers: readonly Server[]; selection: Selection | null }) {
  const { t } = useLingui()
  const chosen = servers.filter(({ id }) => selection?.has(id)).length
  return (
    <div className={`card ${css.frame}`}>
      <table className={css.table}>
        <thead>
          <tr>
            {selection && (
              <th>
                <Checkbox
                  aria-label={t`Choose all`}
                  checked={chosen === servers.length}
                  indeterminate={chosen > 0 && chosen < servers.length}
                  onChange={() => selection.set(chosen === servers.length ? [] : servers.map(({ id }) => id))}
                />
              </th>
            )}
            <th>
              <Trans>Name</Trans>
            </th>
            <th>
              <Trans>State</Trans>
            </th>
            <th className={css.number}>
              <Trans>Players</Trans>
            </th>
            <th className={css.number}>
              <Trans>CPU</Trans>
            </th>
            <th className={css.number}>
              <Trans>Memory</Trans>
            </th>
            <th className={css.number}>
              <Trans>Disk</Trans>
            </th>
            <th>
              <Trans>Address</Trans>
            </th>
            <th aria-label={t`Power`} />
          </tr>
        </thead>
        <tbody>
          {servers.map((server) => (
            <Row key={server.id} server={server} selection={selection} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Row({ server, selection }: { server: Server; selection: Selection | null }) {
  const { t } = useLingui()
  const { ref, inViewport } = useInViewport<HTMLTableRowElement>()
  const words = useUsageWords(useUsage(server, inViewport))
  const disk = useDiskWords(server, inViewport)
  const address = addressOf(server)
  const game = useGameName(server)
  return (
    <tr ref={ref} data-chosen={selection?.has(server.id) || undefined}>
      {selection && (
        <td>
          <Checkbox
            aria-label={t`Choose ${server.name}`}
            checked={selection.has(server.id)}
            onChange={() => selection.toggle(server.id)}
          />
        </td>
      )}
      <td>
        <Link href={`/servers/${server.id}`} className={css.name}>
          {server.name}
        </Link>
        <span className="small faint">{game ?? t`Own files`}</span>
      </td>
      <td>
        <StateBadge state={server.power.state} />
      </td>
      <td className={css.number}>{words.players}</td>
      <td className={css.number}>{words.cpu}</td>
      <td className={css.number}>{words.memory}</td>
      <td className={css.number} data-full={disk?.isFull || undefined}>
        {disk?.text ?? '–'}
        {disk && (
          <span className={`small faint ${css.measured}`}>
            <Moment at={disk.at} />
          </span>
        )}
      </td>
      <td>
        {address && (
          <span className={css.address}>
            <span className="mono">{address}</span>
            <CopyButton text={address} label={t`Copy the address`} />
          </span>
        )}
      </td>
      <td>
        <PowerButtons server={server} isCompact />
      </td>
    </tr>
  )
}
