import { Trans, useLingui } from '@lingui/react/macro'
import { Button, SegmentedControl, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import type { Server } from '../../../../../../src/sdk/index.ts'
import { client } from '../../../../api/client.ts'
import { filesKey } from '../../../../api/files.ts'
import { Empty } from '../../../../components/empty.tsx'
import { Icon } from '../../../../components/icon.tsx'
import { Problem } from '../../../../components/problem.tsx'
import { hrefOf } from '../paths.ts'
import { isLookedAt } from '../preview/image-type.ts'
import css from './search.module.css'
import { SearchField } from './search-field.tsx'

interface Props {
  server: Server
  directory: string
  query: string
  onClose: () => void
}

type Match = Awaited<ReturnType<typeof client.files.search>>['data'][number]

/** Files by their name, or by what is in them, in a folder and all below it. */
export default function SearchResults({ server, directory, query, onClose }: Props) {
  const { t } = useLingui()
  const [where, setWhere] = useState<'name' | 'content'>('name')
  const { data, error, refetch } = useQuery({
    queryKey: [...filesKey(server.id), 'search', directory, query, where],
    queryFn: ({ signal }) => {
      const content = where === 'content'
      return client.files.search(server.id, { q: query, path: directory, content, limit: 100 }, { signal })
    },
    refetchOnWindowFocus: false,
  })
  return (
    <section className="stack" aria-label={t`Search results`}>
      <div className="row">
        <SearchField serverId={server.id} directory={directory} initial={query} />
        <SegmentedControl
          value={where}
          onChange={(value) => setWhere(value as typeof where)}
          data={[
            { value: 'name', label: t`Names` },
            { value: 'content', label: t`Contents` },
          ]}
        />
        <Button variant="default" onClick={onClose}>
          <Trans>Close</Trans>
        </Button>
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton height={240} radius="md" />}
      {data?.data.length === 0 && (
        <div className="card">
          <Empty icon="search" title={t`Nothing was found`} />
        </div>
      )}
      {data && data.data.length > 0 && (
        <ul className={`card ${css.matches}`}>
          {data.data.map((match) => (
            <MatchRow key={`${match.path}:${match.lineNumber}`} server={server} match={match} />
          ))}
        </ul>
      )}
      {data && !data.isComplete && (
        <p className="small faint">
          <Trans>There may be more. Say more exactly what you look for.</Trans>
        </p>
      )}
    </section>
  )
}

function MatchRow({ server, match: { path, kind, lineNumber, line } }: { server: Server; match: Match }) {
  const at = path.lastIndexOf('/')
  const folder = path.slice(0, at) || '/'
  const name = path.slice(at + 1)
  const href =
    kind === 'directory'
      ? hrefOf(server.id, path)
      : `${hrefOf(server.id, folder)}?${isLookedAt(name) ? 'view' : 'edit'}=${encodeURIComponent(name)}`
  return (
    <li>
      <Icon name={kind === 'directory' ? 'folder' : 'file'} size={17} />
      <div className={css.body}>
        <Link href={href}>{path}</Link>
        {line !== null && (
          <p className={`mono ${css.line}`}>
            <span className="faint">{lineNumber}</span> {line}
          </p>
        )}
      </div>
    </li>
  )
}
