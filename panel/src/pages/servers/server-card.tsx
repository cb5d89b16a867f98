import { Trans, useLingui } from '@lingui/react/macro'
import { Progress } from '@mantine/core'
import { Link } from 'wouter'
import type { Server } from '../../../../src/sdk/index.ts'
import { addressOf } from '../../api/servers.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Moment } from '../../components/moment.tsx'
import { PowerButtons } from '../../components/power-buttons.tsx'
import { StateBadge } from '../../components/power-state.tsx'
import { formatBytes } from '../../i18n/format.ts'
import css from './server-card.module.css'

export function ServerCard({ server }: { server: Server }) {
  const { t } = useLingui()
  const address = addressOf(server)
  const { power } = server
  return (
    <li className={`card ${css.card}`}>
      <div className={css.head}>
        <div className="grow">
          <Link href={`/servers/${server.id}`} className={`${css.name} cut`}>
            {server.name}
          </Link>
          <p className="small faint cut">{server.game ?? <Trans>Own files</Trans>}</p>
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
      <DiskUsage server={server} />
      <div className={css.foot}>
        <span className="small faint cut">{power.step ?? (power.since && <Moment at={power.since} />)}</span>
        <PowerButtons server={server} isCompact />
      </div>
    </li>
  )
}

function DiskUsage({ server: { diskUsage, limits } }: { server: Server }) {
  const { t, i18n } = useLingui()
  if (diskUsage === null)
    return (
      <p className="small faint">
        <Trans>Disk not measured yet</Trans>
      </p>
    )
  const used = formatBytes(diskUsage.sizeBytes, i18n.locale)
  if (limits.diskBytes === null)
    return (
      <p className="small soft">
        <Trans>{used} on disk</Trans>
      </p>
    )
  const all = formatBytes(limits.diskBytes, i18n.locale)
  const percent = Math.min(100, (diskUsage.sizeBytes / limits.diskBytes) * 100)
  return (
    <div>
      <p className="small soft">
        <Trans>
          {used} of {all} on disk
        </Trans>
      </p>
      <Progress value={percent} size="sm" color={percent > 90 ? 'red' : 'moss'} aria-label={t`Disk`} />
    </div>
  )
}
