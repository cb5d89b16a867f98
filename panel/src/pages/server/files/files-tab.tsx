import { Trans } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { Suspense } from 'react'
import { useLocation, useParams, useSearchParams } from 'wouter'
import type { Server } from '../../../../../src/sdk/index.ts'
import { joinPath } from '../../../api/files.ts'
import { lazyPart } from '../../../components/lazy-part.ts'
import { Breadcrumbs } from './breadcrumbs.tsx'
import { Directory } from './directory.tsx'
import { directoryOf, hrefOf } from './paths.ts'

// Apart, because a list of files needs none of them.
const FileEditor = lazyPart(() => import('./editor/file-editor.tsx'))
const FilePreview = lazyPart(() => import('./preview/file-preview.tsx'))
const SearchResults = lazyPart(() => import('./search/search-results.tsx'))
const Versions = lazyPart(() => import('./versions/versions.tsx'))
const Trash = lazyPart(() => import('./trash/trash.tsx'))
const DiskUsage = lazyPart(() => import('./usage/disk-usage.tsx'))

/** The folder is in the path of the address, and what is looked at in it behind the question mark. */
export default function FilesTab({ server }: { server: Server }) {
  const directory = directoryOf(useParams()['*'])
  const [search] = useSearchParams()
  // Selection and dialogs belong to one folder.
  if (search.size === 0) return <Directory key={directory} server={server} directory={directory} />
  return (
    <Suspense fallback={<Skeleton height={420} radius="md" />}>
      <View server={server} directory={directory} search={search} />
    </Suspense>
  )
}

interface Props {
  server: Server
  directory: string
  search: URLSearchParams
}

function View({ server, directory, search }: Props) {
  const [, navigate] = useLocation()
  const close = () => navigate(hrefOf(server.id, directory))
  const edited = search.get('edit')
  const viewed = search.get('view')
  const versioned = search.get('versions')
  const sought = search.get('search')
  const show = search.get('show')
  if (show === 'trash') return <Trash server={server} />
  return (
    <div className="stack">
      <div className="row spread">
        <Breadcrumbs server={server} directory={directory} query={show === 'usage' ? '?show=usage' : ''} />
        {show === 'usage' && (
          <Button variant="default" onClick={close}>
            <Trans>Close</Trans>
          </Button>
        )}
      </div>
      {show === 'usage' && <DiskUsage server={server} directory={directory} />}
      {edited !== null && <FileEditor serverId={server.id} path={joinPath(directory, edited)} onClose={close} />}
      {viewed !== null && <FilePreview serverId={server.id} directory={directory} name={viewed} onClose={close} />}
      {sought !== null && (
        <SearchResults key={sought} server={server} directory={directory} query={sought} onClose={close} />
      )}
      {versioned !== null && <Versions server={server} directory={directory} name={versioned} onClose={close} />}
    </div>
  )
}
