import { Trans, useLingui } from '@lingui/react/macro'
import { Skeleton, TextInput, UnstyledButton } from '@mantine/core'
import { useState } from 'react'
import { Link } from 'wouter'
import type { TemplateSummary } from '../../../../src/sdk/index.ts'
import { useTemplates } from '../../api/servers.ts'
import { Icon } from '../../components/icon.tsx'
import { PageTitle } from '../../components/page-title.tsx'
import { Problem } from '../../components/problem.tsx'
import css from './new-server-page.module.css'
import { ServerForm } from './server-form.tsx'

/** Where a search begins to save time. */
const SEARCH_FROM = 9

export default function NewServerPage() {
  const { t } = useLingui()
  const [chosen, setChosen] = useState<TemplateSummary | 'files' | null>(null)
  if (chosen !== null) {
    return <ServerForm template={chosen === 'files' ? null : chosen} onBack={() => setChosen(null)} />
  }
  return (
    <div className="stack">
      <PageTitle title={t`Pick a game`}>
        <Link href="/">
          <Trans>Cancel</Trans>
        </Link>
      </PageTitle>
      <TemplateList onChoose={setChosen} />
    </div>
  )
}

function TemplateList({ onChoose }: { onChoose: (chosen: TemplateSummary | 'files') => void }) {
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
        {shown.map((template) => (
          <li key={template.id}>
            <UnstyledButton className={`card ${css.game}`} onClick={() => onChoose(template)}>
              <span className={css.initial} data-hue={hueOf(template.id)} aria-hidden="true">
                {template.name.slice(0, 1)}
              </span>
              <span className="grow">
                <strong className="cut">{template.name}</strong>
                <span className={`small soft ${css.description}`}>{template.description}</span>
              </span>
            </UnstyledButton>
          </li>
        ))}
        <li>
          <UnstyledButton className={`card ${css.game}`} onClick={() => onChoose('files')}>
            <span className={css.initial} aria-hidden="true">
              <Icon name="folder" />
            </span>
            <span className="grow">
              <strong>
                <Trans>Something else</Trans>
              </strong>
              <span className={`small soft ${css.description}`}>
                <Trans>
                  An empty server for files of your own. It runs the program called <span className="mono">start</span>.
                </Trans>
              </span>
            </span>
          </UnstyledButton>
        </li>
      </ul>
    </>
  )
}

/** One of six, the same for a game every time. */
function hueOf(id: string): number {
  let sum = 0
  for (const letter of id) sum = (sum * 31 + letter.charCodeAt(0)) % 997
  return sum % 6
}
