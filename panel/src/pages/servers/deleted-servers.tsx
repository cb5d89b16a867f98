import { Trans } from '@lingui/react/macro'
import { Link } from 'wouter'
import { useDeletedServers } from '../../api/servers.ts'
import { Moment } from '../../components/moment.tsx'
import css from './servers-page.module.css'

/** Nothing is lost by a deletion: the way back is where the server was. */
export function DeletedServers() {
  const { data: deleted = [] } = useDeletedServers()
  if (deleted.length === 0) return null
  return (
    <details className={css.deleted}>
      <summary>
        <Trans>Deleted servers that can be brought back ({deleted.length})</Trans>
      </summary>
      <ul>
        {deleted.map(({ id, name, deletion }) => (
          <li key={id}>
            <Link href={`/servers/${id}`}>{name}</Link>{' '}
            {deletion && (
              <span className="small faint">
                <Trans>
                  gone for good <Moment at={deletion.purgeAt} />
                </Trans>
              </span>
            )}
          </li>
        ))}
      </ul>
    </details>
  )
}
