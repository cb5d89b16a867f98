import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import { lazy, Suspense, useState } from 'react'
import type { Selection } from 'react-aria-components'
import { Link, useLocation, useParams, useSearchParams } from 'wouter'
import type { FileEntry, Server } from '../../../../../src/sdk/index.ts'
import { type FileOrder, joinPath, useDirectory, useFileActions } from '../../../api/files.ts'
import { useMay } from '../../../api/session.ts'
import { Empty } from '../../../components/empty.tsx'
import { Problem } from '../../../components/problem.tsx'
import { showFailure } from '../../../components/toasts.tsx'
import { type Dialog, Dialogs } from './dialogs.tsx'
import { type DroppedFile, readDrop } from './dropped.ts'
import { TEXT_MAX_BYTES } from './editor/text-file.ts'
import { FileTable } from './file-table.tsx'
import { FileToolbar } from './file-toolbar.tsx'
import css from './files-tab.module.css'
import { directoryOf, hrefOf, parentsOf } from './paths.ts'
import { useRemoval } from './removal.ts'
import { UploadList } from './upload-list.tsx'
import { startUploads } from './uploads.ts'

// Apart, because a list of files needs no editor.
const FileEditor = lazy(() => import('./editor/file-editor.tsx'))

export default function FilesTab({ server }: { server: Server }) {
  const params = useParams()
  const directory = directoryOf(params['*'])
  const [search, setSearch] = useSearchParams()
  const edited = search.get('edit')
  if (edited !== null) {
    return (
      <div className="stack">
        <Breadcrumbs server={server} directory={directory} />
        <Suspense fallback={<Skeleton height={420} radius="md" />}>
          <FileEditor serverId={server.id} path={joinPath(directory, edited)} onClose={() => setSearch({})} />
        </Suspense>
      </div>
    )
  }
  // Selection and dialogs belong to one folder.
  return <Directory key={directory} server={server} directory={directory} />
}

function Directory({ server, directory }: { server: Server; directory: string }) {
  const { t } = useLingui()
  const [, navigate] = useLocation()
  const may = useMay()
  const [order, setOrder] = useState<FileOrder>({ sort: 'name', order: 'asc' })
  const [selected, setSelected] = useState<Selection>(new Set())
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const [isOver, setOver] = useState(false)
  const listing = useDirectory(server.id, directory, order)
  const { download, refresh } = useFileActions(server.id)
  const removeWithUndo = useRemoval(server.id, directory)
  const entries = listing.data?.pages.flatMap((page) => page.data)
  const chosen = entries?.filter(({ name }) => selected === 'all' || selected.has(name)) ?? []
  const mayWrite = may('files:write')

  const send = (files: readonly DroppedFile[]) => void startUploads(server.id, directory, files).then(refresh)
  const removeChosen = () => {
    if (chosen.length === 0 || !mayWrite) return
    setSelected(new Set())
    removeWithUndo(chosen.map(({ name }) => name))
  }
  const save = (entry: FileEntry) =>
    download.mutate(entry, { onError: (error) => showFailure(t`It could not be downloaded`, error) })
  const open = (entry: FileEntry) => {
    if (entry.kind === 'directory') return navigate(hrefOf(server.id, entry.path))
    if (!entry.isText || entry.sizeBytes > TEXT_MAX_BYTES) return save(entry)
    navigate(`${hrefOf(server.id, directory)}?edit=${encodeURIComponent(entry.name)}`)
  }
  const renameChosen = () => {
    const [entry] = chosen
    if (entry && chosen.length === 1 && mayWrite) setDialog({ kind: 'rename', entry })
  }

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping has the button "Upload" beside it
    <div
      className={`stack ${css.files}`}
      data-over={isOver || undefined}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(mayWrite)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        if (mayWrite) void readDrop(event.dataTransfer).then(send)
      }}
    >
      <div className="row spread">
        <Breadcrumbs server={server} directory={directory} />
        <FileToolbar
          chosen={chosen}
          onUpload={send}
          onNewFolder={() => setDialog({ kind: 'folder' })}
          onDownload={save}
          onRename={renameChosen}
          onDelete={removeChosen}
        />
      </div>
      <UploadList serverId={server.id} />
      {listing.error && <Problem error={listing.error} onRetry={() => void listing.refetch()} />}
      {!entries && !listing.error && <Skeleton height={320} radius="md" />}
      {entries?.length === 0 && (
        <div className="card">
          <Empty icon="folder" title={t`This folder is empty`}>
            {mayWrite && (
              <p>
                <Trans>Drop files or whole folders here to upload them.</Trans>
              </p>
            )}
          </Empty>
        </div>
      )}
      {entries && entries.length > 0 && (
        <FileTable
          entries={entries}
          order={order}
          onOrder={setOrder}
          selected={selected}
          onSelect={setSelected}
          onOpen={open}
          onDelete={removeChosen}
          onRename={renameChosen}
          hasMore={listing.hasNextPage}
          isLoadingMore={listing.isFetchingNextPage}
          onLoadMore={() => void listing.fetchNextPage()}
        />
      )}
      <p className="small faint" aria-live="polite">
        {chosen.length > 0 && <Plural value={chosen.length} one="# selected" other="# selected" />}
      </p>
      {dialog && <Dialogs serverId={server.id} directory={directory} dialog={dialog} onClose={() => setDialog(null)} />}
    </div>
  )
}

function Breadcrumbs({ server, directory }: { server: Server; directory: string }) {
  const { t } = useLingui()
  const parents = parentsOf(directory)
  return (
    <nav className={css.breadcrumbs} aria-label={t`Folder`}>
      <Link href={hrefOf(server.id, '/')} aria-current={parents.length === 0 ? 'page' : undefined}>
        {server.name}
      </Link>
      {parents.map(({ name, path }) => (
        <span key={path}>
          <span className="faint" aria-hidden="true">
            /
          </span>{' '}
          <Link href={hrefOf(server.id, path)} aria-current={path === directory ? 'page' : undefined}>
            {name}
          </Link>
        </span>
      ))}
    </nav>
  )
}
