import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useState } from 'react'
import { Link } from 'wouter'
import type { TemplateSummary } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { useTemplates } from '../../../api/servers.ts'
import { useTemplateActions } from '../../../api/templates.ts'
import { Confirm } from '../../../components/confirm.tsx'
import { Problem } from '../../../components/problem.tsx'
import { showFailure, showToast } from '../../../components/toasts.tsx'
import { TemplateImport } from './template-import.tsx'
import css from './templates-tab.module.css'

export function TemplatesTab() {
  const may = useMay()
  const { data: templates, error, refetch } = useTemplates()
  const own = templates?.filter(({ source }) => source === 'own') ?? []
  const shipped = templates?.filter(({ source }) => source === 'shipped') ?? []
  return (
    <div className="stack">
      {may('templates:write') && <TemplateImport />}
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!templates && !error && <Skeleton height={200} radius="md" />}
      {own.length > 0 && (
        <>
          <h2>
            <Trans>Your own</Trans>
          </h2>
          <TemplateRows templates={own} />
        </>
      )}
      {shipped.length > 0 && (
        <>
          <h2>
            <Trans>From Gamekeeper</Trans>
          </h2>
          <TemplateRows templates={shipped} />
        </>
      )}
    </div>
  )
}

function TemplateRows({ templates }: { templates: readonly TemplateSummary[] }) {
  return (
    <ul className={`card ${css.list}`}>
      {templates.map((template) => (
        <TemplateRow key={template.id} template={template} />
      ))}
    </ul>
  )
}

function TemplateRow({ template }: { template: TemplateSummary }) {
  const { t } = useLingui()
  const may = useMay()
  const runtimes = template.runtimes.map((kind) => (kind === 'process' ? t`process` : t`container`))
  return (
    <li className={css.template}>
      <div className="grow">
        <p className={css.name}>
          <strong>{template.name}</strong>
          <span className="mono small faint">{template.id}</span>
          {template.isTested && (
            <span className={css.tag}>
              <Trans>tested</Trans>
            </span>
          )}
        </p>
        <p className="small soft">
          {runtimes.join(', ')}
          {template.description && ` · ${template.description}`}
        </p>
      </div>
      {may('servers:write') && (
        <Button component={Link} href={`/servers/new/${template.id}`} variant="default" size="xs">
          <Trans>Use</Trans>
        </Button>
      )}
      {template.source === 'own' && may('templates:write') && <Remove template={template} />}
    </li>
  )
}

function Remove({ template: { id, name } }: { template: TemplateSummary }) {
  const { t } = useLingui()
  const { remove } = useTemplateActions()
  const [isAsking, setAsking] = useState(false)
  const run = () =>
    remove.mutate(id, {
      onSuccess: () => showToast(t`${name} is deleted.`),
      onError: (error) => showFailure(t`The template could not be deleted`, error),
    })
  return (
    <>
      <Button
        variant="default"
        size="xs"
        loading={remove.isPending}
        aria-label={t`Delete ${name}`}
        onClick={() => setAsking(true)}
      >
        <Trans>Delete</Trans>
      </Button>
      <Confirm
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        onConfirm={run}
        title={t`Delete ${name}?`}
        text={t`No server can be made from it any more. It is refused while a server uses it.`}
        action={t`Delete`}
      />
    </>
  )
}
