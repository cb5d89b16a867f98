import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useState } from 'react'
import type { FileVersion, Server } from '../../../../../../src/sdk/index.ts'
import { useFileVersions } from '../../../../api/backup-contents.ts'
import { joinPath } from '../../../../api/files.ts'
import { Empty } from '../../../../components/empty.tsx'
import { Moment } from '../../../../components/moment.tsx'
import { Problem } from '../../../../components/problem.tsx'
import { formatBytes } from '../../../../i18n/format.ts'
import { VersionDetails } from './version-details.tsx'
import css from './versions.module.css'

interface Props {
  server: Server
  directory: string
  name: string
  onClose: () => void
}

/** What backups know of one file. */
export default function Versions({ server, directory, name, onClose }: Props) {
  const { t } = useLingui()
  const path = joinPath(directory, name)
  const { data, error, refetch } = useFileVersions(server.id, path)
  const [chosenId, setChosenId] = useState<string | null>(null)
  const versions = data && distinct(data)
  const chosen = versions?.find(({ backupId }) => backupId === chosenId) ?? versions?.[0]
  return (
    <section className="stack" aria-label={t`Versions of ${name}`}>
      <div className="row">
        <h2 className="cut grow">
          <Trans>Versions of {name}</Trans>
        </h2>
        <Button variant="default" onClick={onClose}>
          <Trans>Close</Trans>
        </Button>
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!versions && !error && <Skeleton height={320} radius="md" />}
      {versions?.length === 0 && (
        <div className="card">
          <Empty icon="history" title={t`No backup has this file yet`} />
        </div>
      )}
      {versions && chosen && (
        <div className={css.columns}>
          <ul className={`card ${css.list}`}>
            {versions.map((version) => (
              <VersionRow
                key={version.backupId}
                version={version}
                isChosen={version === chosen}
                onChoose={() => setChosenId(version.backupId)}
              />
            ))}
          </ul>
          <VersionDetails key={chosen.backupId} server={server} version={chosen} name={name} />
        </div>
      )}
    </section>
  )
}

/** Of backups that hold the same content the oldest: since then it was so. */
function distinct(newestFirst: readonly FileVersion[]): FileVersion[] {
  return newestFirst.filter((each, index) => each.version !== newestFirst[index + 1]?.version)
}

interface RowProps {
  version: FileVersion
  isChosen: boolean
  onChoose: () => void
}

function VersionRow({ version: { backupCreatedAt, sizeBytes }, isChosen, onChoose }: RowProps) {
  const { i18n } = useLingui()
  return (
    <li>
      <button type="button" aria-pressed={isChosen} onClick={onChoose}>
        <Moment at={backupCreatedAt} />
        <span className="small faint">{formatBytes(sizeBytes, i18n.locale)}</span>
      </button>
    </li>
  )
}
