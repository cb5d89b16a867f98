import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Button, Checkbox, Skeleton, Tooltip } from '@mantine/core'
import { Link } from 'wouter'
import type { Backup, BackupFile, Server } from '../../../../../../src/sdk/index.ts'
import { useBackupFolder, useSaveBackupFile } from '../../../../api/backup-contents.ts'
import { Icon } from '../../../../components/icon.tsx'
import { Moment } from '../../../../components/moment.tsx'
import { Problem } from '../../../../components/problem.tsx'
import { formatBytes } from '../../../../i18n/format.ts'
import { parentsOf } from '../../files/paths.ts'
import { addressOfBackups } from '../addresses.ts'
import css from './inside.module.css'

interface Props {
  server: Server
  backup: Backup
  path: string
  chosen: ReadonlySet<string>
  onChoose: (chosen: ReadonlySet<string>) => void
}

export function BackupFolder({ server, backup, path, chosen, onChoose }: Props) {
  const { t } = useLingui()
  const folder = useBackupFolder(server.id, backup.id, path)
  const entries = folder.data?.pages.flatMap((page) => page.data)
  const addressOf = (to: string) => addressOfBackups(server.id, { inside: backup.id, path: to })
  const toggle = (entry: BackupFile, isChosen: boolean) => {
    const next = new Set(chosen)
    if (isChosen) next.add(entry.path)
    else next.delete(entry.path)
    onChoose(next)
  }
  return (
    <div className="card">
      <nav className={css.path} aria-label={t`Folder in the backup`}>
        <Link href={addressOf('/')}>{t`All files`}</Link>
        {parentsOf(path).map((parent) => (
          <span key={parent.path}>
            <span className="faint">/</span> <Link href={addressOf(parent.path)}>{parent.name}</Link>
          </span>
        ))}
      </nav>
      {folder.error && <Problem error={folder.error} onRetry={() => void folder.refetch()} />}
      {!entries && !folder.error && <Skeleton height={200} />}
      {entries?.length === 0 && (
        <p className={`soft ${css.empty}`}>
          <Trans>This folder is empty</Trans>
        </p>
      )}
      <ul className={css.entries}>
        {entries?.map((entry) => (
          <li key={entry.path}>
            <Checkbox
              aria-label={t`Choose ${entry.name}`}
              checked={chosen.has(entry.path)}
              onChange={(event) => toggle(entry, event.currentTarget.checked)}
            />
            <EntryName entry={entry} href={addressOf(entry.path)} />
            <EntryFigures entry={entry} />
            <DownloadLink server={server} backup={backup} entry={entry} />
          </li>
        ))}
      </ul>
      {folder.hasNextPage && (
        <Button
          variant="subtle"
          fullWidth
          loading={folder.isFetchingNextPage}
          onClick={() => void folder.fetchNextPage()}
        >
          <Trans>More</Trans>
        </Button>
      )}
    </div>
  )
}

function EntryName({ entry, href }: { entry: BackupFile; href: string }) {
  return (
    <span className={css.name} data-kind={entry.kind}>
      <Icon name={entry.kind === 'directory' ? 'folder' : 'file'} size={17} />
      {entry.kind === 'directory' ? (
        <Link href={href} className="cut">
          {entry.name}
        </Link>
      ) : (
        <span className="cut">{entry.name}</span>
      )}
      {entry.symlinkTarget !== null && <span className="faint cut">→ {entry.symlinkTarget}</span>}
    </span>
  )
}

function EntryFigures({ entry }: { entry: BackupFile }) {
  const { i18n } = useLingui()
  return (
    <>
      <span className={`faint small ${css.time}`}>
        <Moment at={entry.modifiedAt} />
      </span>
      <span className={`faint small ${css.size}`}>
        {entry.kind === 'file' && formatBytes(entry.sizeBytes, i18n.locale)}
      </span>
    </>
  )
}

function DownloadLink({ server, backup, entry }: { server: Server; backup: Backup; entry: BackupFile }) {
  const { t } = useLingui()
  const save = useSaveBackupFile(server.id, backup.id)
  if (entry.kind !== 'file') return <span className={css.tool} />
  return (
    <Tooltip label={t`Download`}>
      <ActionIcon
        className={css.tool}
        variant="subtle"
        color="gray"
        loading={save.isPending}
        onClick={() => save.mutate(entry)}
        aria-label={t`Download ${entry.name}`}
      >
        <Icon name="download" size={16} />
      </ActionIcon>
    </Tooltip>
  )
}
