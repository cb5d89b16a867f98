import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import { useRef, useState } from 'react'
import type { Selection } from 'react-aria-components'
import { useLocation } from 'wouter'
import type { FileEntry, Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { type FileOrder, joinPath, useDirectory, useFileActions } from '../../../api/files.ts'
import type { Sight } from '../../../api/live/pages-in-sight.ts'
import { Empty } from '../../../components/empty.tsx'
import { Problem } from '../../../components/problem.tsx'
import { showFailure } from '../../../components/toasts.tsx'
import { JobStrip } from '../jobs/job-strip.tsx'
import { Breadcrumbs } from './breadcrumbs.tsx'
import { type Dialog, Dialogs } from './dialogs/dialogs.tsx'
import { TEXT_MAX_BYTES } from './editor/text-file.ts'
import { FileTable } from './file-table.tsx'
import { FileToolbar } from './file-toolbar.tsx'
import { hrefOf } from './paths.ts'
import { isLookedAt } from './preview/image-type.ts'
import { useRemoval } from './removal.ts'
import { SearchField } from './search/search-field.tsx'
import { DropZone } from './uploads/drop-zone.tsx'
import type { DroppedFile } from './uploads/dropped.ts'
import { UploadList } from './uploads/upload-list.tsx'
import { startUploads } from './uploads/uploads.ts'

const KINDS = ['pack', 'unpack', 'pull']

export function Directory({ server, directory }: { server: Server; directory: string }) {
  const { t } = useLingui()
  const mayWrite = useMay()('files:write')
  const [order, setOrder] = useState<FileOrder>({ sort: 'name', order: 'asc' })
  const [selected, setSelected] = useState<Selection>(new Set())
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const [renamed, setRenamed] = useState<string | null>(null)
  const sight = useRef<Sight>({ first: 0, last: 0 })
  const listing = useDirectory(server.id, directory, order, sight)
  const { copy, move, refresh } = useFileActions(server.id)
  const removeWithUndo = useRemoval(server.id, directory)
  const { open, save } = useOpening(server.id, directory)
  const { entries } = listing
  const chosen = entries?.filter(({ name }) => selected === 'all' || selected.has(name)) ?? []

  const send = (files: readonly DroppedFile[]) => void startUploads(server.id, directory, files).then(refresh)
  const removeChosen = () => {
    if (chosen.length === 0 || !mayWrite) return
    setSelected(new Set())
    removeWithUndo(chosen.map(({ name }) => name))
  }
  const renameChosen = () => {
    const [entry] = chosen
    if (!entry || !mayWrite) return
    if (chosen.length === 1) setRenamed(entry.name)
    else setDialog({ kind: 'batch-rename', entries: chosen })
  }
  const rename = (to: string | null) => {
    setRenamed(null)
    if (renamed === null || to === null) return
    setSelected(new Set([to]))
    move.mutate([{ from: joinPath(directory, renamed), to: joinPath(directory, to) }], {
      onError: (error) => {
        setSelected(new Set([renamed]))
        showFailure(t`${renamed} could not be renamed`, error)
      },
    })
  }
  const copyChosen = () =>
    copy.mutate(
      chosen.map(({ path }) => path),
      { onError: (error) => showFailure(t`It could not be copied`, error) },
    )

  return (
    <DropZone directory={mayWrite ? directory : null} onDrop={send}>
      <div className="row spread">
        <Breadcrumbs server={server} directory={directory} />
        <SearchField serverId={server.id} directory={directory} />
        <FileToolbar
          serverId={server.id}
          directory={directory}
          chosen={chosen}
          onUpload={send}
          onDialog={setDialog}
          onDownload={save}
          onRename={renameChosen}
          onCopy={copyChosen}
          onDelete={removeChosen}
        />
      </div>
      <UploadList serverId={server.id} />
      <JobStrip serverId={server.id} kinds={KINDS} />
      {listing.error && <Problem error={listing.error} onRetry={() => void listing.refetch()} />}
      {!entries && !listing.error && <Skeleton height={320} radius="md" />}
      {entries?.length === 0 && <EmptyFolder mayWrite={mayWrite} />}
      {entries && entries.length > 0 && (
        <FileTable
          entries={entries}
          sight={sight}
          order={order}
          onOrder={setOrder}
          selected={selected}
          onSelect={setSelected}
          onOpen={open}
          onDelete={removeChosen}
          onRename={renameChosen}
          renamed={renamed}
          onRenamed={rename}
          hasMore={listing.hasNextPage}
          isLoadingMore={listing.isFetchingNextPage}
          onLoadMore={() => void listing.fetchNextPage()}
        />
      )}
      <p className="small faint" aria-live="polite">
        {chosen.length > 0 && <Plural value={chosen.length} one="# selected" other="# selected" />}
      </p>
      {dialog && (
        <Dialogs
          serverId={server.id}
          directory={directory}
          taken={new Set(entries?.map(({ name }) => name))}
          dialog={dialog}
          onClose={() => setDialog(null)}
        />
      )}
    </DropZone>
  )
}

/** A folder is gone into, a text edited, a picture or a log looked at, and anything else downloaded. */
function useOpening(serverId: string, directory: string) {
  const { t } = useLingui()
  const [, navigate] = useLocation()
  const { download } = useFileActions(serverId)
  const show = (how: 'edit' | 'view', { name }: FileEntry) =>
    navigate(`${hrefOf(serverId, directory)}?${how}=${encodeURIComponent(name)}`)
  const save = ({ path }: FileEntry) =>
    download.mutate(path, { onError: (error) => showFailure(t`It could not be downloaded`, error) })
  const open = (entry: FileEntry) => {
    if (entry.kind === 'directory') return navigate(hrefOf(serverId, entry.path))
    const { name, isText, sizeBytes } = entry
    if (isLookedAt(name) || (isText && sizeBytes > TEXT_MAX_BYTES)) return show('view', entry)
    return isText ? show('edit', entry) : save(entry)
  }
  return { open, save }
}

function EmptyFolder({ mayWrite }: { mayWrite: boolean }) {
  const { t } = useLingui()
  return (
    <div className="card">
      <Empty icon="folder" title={t`This folder is empty`}>
        {mayWrite && (
          <p>
            <Trans>Drop files or whole folders here to upload them.</Trans>
          </p>
        )}
      </Empty>
    </div>
  )
}
