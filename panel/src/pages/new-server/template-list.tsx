import { Trans, useLingui } from '@lingui/react/macro'
import { Skeleton, TextInput } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import type { TemplateSummary } from '../../../../src/sdk/index.ts'
import { useTemplates } from '../../api/servers.ts'
import { Icon } from '../../components/icon.tsx'
import { Problem } from '../../components/problem.tsx'
import css from './new-server-page.module.css'

/** Where a search begins to save time. */
const SEARCH_FROM = 9
/** No template has such an id. */
export const EMPTY_SERVER = '_empty'

/** Those that our tests start come first: they are the likeliest to run at once. */
const byTested = (a: TemplateSummary, b: TemplateSummary) => Number(b.isTested) - Number(a.isTested)

export function TemplateList() {
  const { t } = useLingui()
  const { data: templates, error, refetch } = useTemplates()
  const [search, setSearch] = useState('')
  if (error) return <Problem error={error} onRetry={() => void refetch()} />
  if (!templates) return <Skeleton height={240} radius="md" />
  const shown = templates.filter(({ name, id }) => `${name} ${id}`.toLowerCase().includes(search.toLowerCase()))
  return (
    <>
      {templates.length >= SEARCH_FROM && (
        <TextInput
          type="search"
          aria-label={t`Search games`}
          placeholder={t`Search`}
          leftSection={<Icon name="search" size={16} />}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
      )}
      <ul className={css.games}>
        {shown.toSorted(byTested).map(({ id, name, description }) => (
          <Game key={id} id={id} name={name} mark={name.slice(0, 1)}>
            {description}
          </Game>
        ))}
        <Game id={EMPTY_SERVER} name={t`Something else`} mark={<Icon name="folder" />}>
          <Trans>
            An empty server for files of your own. It runs the program called <span className="mono">start</span>.
          </Trans>
        </Game>
      </ul>
    </>
  )
}

function Game({ id, name, mark, children }: { id: string; name: string; mark: ReactNode; children: ReactNode }) {
  return (
    <li>
      <Link href={`/servers/new/${id}`} className={`card ${css.game}`}>
        <span className={css.initial} data-hue={hueOf(id)} aria-hidden="true">
          {mark}
        </span>
        <span className="grow">
          <strong className="cut">{name}</strong>
          <span className={`small soft ${css.description}`}>{children}</span>
        </span>
      </Link>
    </li>
  )
}

/** One of six, the same for a game every time. */
function hueOf(id: string): number {
  let sum = 0
  for (const letter of id) sum = (sum * 31 + letter.charCodeAt(0)) % 997
  return sum % 6
}
