import { msg } from '@lingui/core/macro'
import { Trans, useLingui } from '@lingui/react/macro'
import { Progress } from '@mantine/core'
import { Link } from 'wouter'
import type { Disk } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { useDisks } from '../../../api/instance.ts'
import { useServers } from '../../../api/servers.ts'
import { Moment } from '../../../components/moment.tsx'
import { Problem } from '../../../components/problem.tsx'
import { formatBytes } from '../../../i18n/format.ts'
import css from './health-tab.module.css'

const SHOWN_AT_MOST = 6

/** What is left of the disks, and the files of servers, as measured last, the largest first. */
export function DiskCard() {
  const { i18n } = useLingui()
  const { data: servers = [] } = useServers()
  const bytesOf = (server: (typeof servers)[number]) => server.diskUsage?.sizeBytes ?? 0
  const total = servers.reduce((sum, server) => sum + bytesOf(server), 0)
  const largest = servers.toSorted((a, b) => bytesOf(b) - bytesOf(a)).slice(0, SHOWN_AT_MOST)
  const all = formatBytes(total, i18n.locale)
  const isMeasured = servers.some(({ diskUsage }) => diskUsage !== null)
  return (
    <section className={`card ${css.card}`}>
      <Disks />
      <h2>
        {isMeasured ? (
          <Trans>Files of all servers: {all}</Trans>
        ) : (
          <Trans>Files of all servers: not measured yet</Trans>
        )}
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
                {server.diskUsage && (
                  <>
                    {', '}
                    <Moment at={server.diskUsage.measuredAt} />
                  </>
                )}
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

const FOLDERS = {
  data: msg`data folder`,
  servers: msg`files of servers`,
  backups: msg`backups`,
} as const satisfies Record<Disk['folders'][number], unknown>
/** Where a disk is called nearly full. */
const NEARLY_FULL = 0.9

function Disks() {
  const { t, i18n } = useLingui()
  const { data: disks, error } = useDisks(useMay()('*'))
  if (error) return <Problem error={error} />
  return disks?.map(({ folders, totalBytes, freeBytes }) => {
    const used = (totalBytes - freeBytes) / Math.max(totalBytes, 1)
    const free = formatBytes(freeBytes, i18n.locale)
    const total = formatBytes(totalBytes, i18n.locale)
    const names = folders.map((folder) => t(FOLDERS[folder])).join(', ')
    return (
      <div key={names} className={css.usage}>
        <h2>
          <Trans>
            {free} of {total} are free
          </Trans>
        </h2>
        <Progress
          value={used * 100}
          size="sm"
          {...(used > NEARLY_FULL ? { color: 'red' } : {})}
          aria-label={t`Disk with ${names}`}
        />
        <p className="small soft">{names}</p>
      </div>
    )
  })
}
