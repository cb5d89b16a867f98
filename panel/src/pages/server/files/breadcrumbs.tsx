import { useLingui } from '@lingui/react/macro'
import { Link } from 'wouter'
import type { Server } from '../../../../../src/sdk/index.ts'
import css from './files-tab.module.css'
import { hrefOf, parentsOf } from './paths.ts'

interface Props {
  server: Server
  directory: string
  /** Stays in the address from folder to folder. */
  query?: string
}

export function Breadcrumbs({ server, directory, query = '' }: Props) {
  const { t } = useLingui()
  const parents = parentsOf(directory)
  return (
    <nav className={css.breadcrumbs} aria-label={t`Folder`}>
      <Link href={hrefOf(server.id, '/') + query} aria-current={parents.length === 0 ? 'page' : undefined}>
        {server.name}
      </Link>
      {parents.map(({ name, path }) => (
        <span key={path}>
          <span className="faint" aria-hidden="true">
            /
          </span>{' '}
          <Link href={hrefOf(server.id, path) + query} aria-current={path === directory ? 'page' : undefined}>
            {name}
          </Link>
        </span>
      ))}
    </nav>
  )
}
