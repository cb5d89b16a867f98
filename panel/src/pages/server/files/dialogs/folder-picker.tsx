import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Button, Skeleton, TextInput, Tooltip } from '@mantine/core'
import { useState } from 'react'
import { joinPath, useDirectory, useFileActions } from '../../../../api/files.ts'
import { Icon } from '../../../../components/icon.tsx'
import { Problem } from '../../../../components/problem.tsx'
import css from './dialogs.module.css'

interface Props {
  serverId: string
  folder: string
  onChange: (folder: string) => void
}

/** A folder that is chosen by looking. Closed at first: most of the time it is the one that is open. */
export function FolderField({ label, ...picker }: Props & { label: string }) {
  const { t } = useLingui()
  const [isOpen, setOpen] = useState(false)
  return (
    <div className={css.folderField}>
      <p className={css.label}>{label}</p>
      <div className="row">
        <span className={`mono grow ${css.path}`}>{picker.folder}</span>
        {!isOpen && (
          <Button
            variant="default"
            size="xs"
            leftSection={<Icon name="folder" size={16} />}
            aria-label={t`Choose another folder`}
            onClick={() => setOpen(true)}
          >
            <Trans>Choose…</Trans>
          </Button>
        )}
      </div>
      {isOpen && <FolderList {...picker} />}
    </div>
  )
}

export function FolderPicker(props: Props) {
  return (
    <div className={css.folderField}>
      <p className={`mono ${css.path}`}>{props.folder}</p>
      <FolderList {...props} />
    </div>
  )
}

/** Directories come first in a listing, so its first pages have them. */
function FolderList({ serverId, folder, onChange }: Props) {
  const { t } = useLingui()
  const { entries, error, hasNextPage, fetchNextPage } = useDirectory(
    serverId,
    folder,
    { sort: 'name', order: 'asc' },
    null,
  )
  const folders = entries?.filter(({ kind }) => kind === 'directory')
  const mayHaveMore = hasNextPage && entries?.at(-1)?.kind === 'directory'
  const parent = folder.slice(0, folder.lastIndexOf('/')) || '/'
  return (
    <>
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
      <NewFolderHere serverId={serverId} folder={folder} onChange={onChange} />
    </>
  )
}

/** Not a form of its own: it stands in one. */
function NewFolderHere({ serverId, folder, onChange }: Props) {
  const { t } = useLingui()
  const { makeFolder } = useFileActions(serverId)
  const [name, setName] = useState('')
  const isGood = name.trim() !== '' && !name.includes('/')
  const make = () =>
    makeFolder.mutate(
      { path: folder, name },
      {
        onSuccess: () => {
          setName('')
          onChange(joinPath(folder, name))
        },
      },
    )
  return (
    <>
      <div className={css.newFolder}>
        <TextInput
          className="grow"
          size="xs"
          aria-label={t`Name of a new folder here`}
          placeholder={t`New folder here`}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || name === '') return
            event.preventDefault()
            if (isGood) make()
          }}
        />
        <Tooltip label={t`Make this folder`}>
          <ActionIcon
            variant="default"
            size={30}
            aria-label={t`Make this folder`}
            disabled={!isGood}
            loading={makeFolder.isPending}
            onClick={make}
          >
            <Icon name="plus" size={16} />
          </ActionIcon>
        </Tooltip>
      </div>
      {makeFolder.error && <Problem error={makeFolder.error} />}
    </>
  )
}
