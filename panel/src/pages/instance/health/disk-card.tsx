import { Trans, useLingui } from '@lingui/react/macro'
import { Progress } from '@mantine/core'
import { Link } from 'wouter'
import { useServers } from '../../../api/servers.ts'
import { formatBytes } from '../../../i18n/format.ts'
import css from './health-tab.module.css'

const SHOWN_AT_MOST = 6

/** The files of servers, as measured last, the largest first. */
export function DiskCard() {
  const { i18n } = useLingui()
  const { data: servers = [] } = useServers()
  const bytesOf = (server: (typeof servers)[number]) => server.diskUsage?.sizeBytes ?? 0
  const total = servers.reduce((sum, server) => sum + bytesOf(server), 0)
  const largest = servers.toSorted((a, b) => bytesOf(b) - bytesOf(a)).slice(0, SHOWN_AT_MOST)
  const all = formatBytes(total, i18n.locale)
  return (
    <section className={`card ${css.card}`}>
      <h2>
        <Trans>Files of all servers: {all}</Trans>
      </h2>
      <ul className={css.list}>
        {largest.map((server) => (
          <li key={server.id} className={css.usage}>
            <p className="small">
              <Link href={`/servers/${server.id}/files`} className="cut">
                {server.name}
              </Link>
              <span className="soft">
                {server.diskUsage ? formatBytes(server.diskUsage.sizeBytes, i18n.locale) : '–'}
                {server.limits.diskBytes !== null && ` / ${formatBytes(server.limits.diskBytes, i18n.locale)}`}
              </span>
            </p>
            <Progress
              value={(bytesOf(server) / Math.max(server.limits.diskBytes ?? total, 1)) * 100}
              size="sm"
              aria-label={server.name}
            />
          </li>
        ))}
      </ul>
      {servers.length === 0 && (
        <p className="soft">
          <Trans>There is no server yet.</Trans>
        </p>
      )}
    </section>
  )
}
