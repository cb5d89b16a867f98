import { Trans, useLingui } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import { useDirectory } from '../../../../api/files.ts'
import { Icon } from '../../../../components/icon.tsx'
import { Problem } from '../../../../components/problem.tsx'
import css from './dialogs.module.css'

interface Props {
  serverId: string
  folder: string
  onChange: (folder: string) => void
}

/** Directories come first in a listing, so its first pages have them. */
export function FolderPicker({ serverId, folder, onChange }: Props) {
  const { t } = useLingui()
  const { data, error, hasNextPage, fetchNextPage } = useDirectory(serverId, folder, { sort: 'name', order: 'asc' })
  const entries = data?.pages.flatMap((page) => page.data)
  const folders = entries?.filter(({ kind }) => kind === 'directory')
  const mayHaveMore = hasNextPage && entries?.at(-1)?.kind === 'directory'
  const parent = folder.slice(0, folder.lastIndexOf('/')) || '/'
  return (
    <div>
      <p className="mono">{folder}</p>
      <ul className={css.folders} aria-label={t`Folders`}>
        {folder !== '/' && (
          <li>
            <button type="button" onClick={() => onChange(parent)}>
              <Icon name="folder" size={16} /> ..
            </button>
          </li>
        )}
        {!folders && !error && <Skeleton height={60} />}
        {folders?.map(({ name, path }) => (
          <li key={path}>
            <button type="button" onClick={() => onChange(path)}>
              <Icon name="folder" size={16} /> <span className="cut">{name}</span>
            </button>
          </li>
        ))}
        {mayHaveMore && (
          <li>
            <button type="button" onClick={() => void fetchNextPage()}>
              <Trans>More</Trans>
            </button>
          </li>
        )}
      </ul>
      {error && <Problem error={error} />}
    </div>
  )
}
