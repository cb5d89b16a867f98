import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton, TextInput } from '@mantine/core'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { NewServer, StoredTemplate } from '../../../../src/sdk/index.ts'
import { client } from '../../api/client.ts'
import { useCreateServer, useServers, useTemplate } from '../../api/servers.ts'
import { PageTitle } from '../../components/page-title.tsx'
import { Problem } from '../../components/problem.tsx'
import { showFailure } from '../../components/toasts.tsx'
import { isAsked, isShown, VariableField, type VariableValues } from '../../components/variable-field.tsx'
import css from './new-server-page.module.css'
import { freePort } from './port.ts'

export function ServerForm({ templateId }: { templateId: string | null }) {
  const { t } = useLingui()
  const { data: template, error } = useTemplate(templateId)
  return (
    <div className="stack">
      <PageTitle title={templateId === null ? t`An empty server` : (template?.name ?? templateId)} />
      {error && <Problem error={error} />}
      {templateId !== null && !template && !error && <Skeleton height={240} radius="md" />}
      {(templateId === null || template) && <Fields template={template ?? null} />}
    </div>
  )
}

function Fields({ template }: { template: StoredTemplate | null }) {
  const { t } = useLingui()
  const { data: servers = [] } = useServers()
  const [name, setName] = useState(template?.name ?? '')
  const [values, setValues] = useState<VariableValues>({})
  const create = useCreateAndStart(template)
  const shown = (template?.variables ?? []).filter(isShown)
  const field = (variable: (typeof shown)[number]) => (
    <VariableField
      key={variable.name}
      variable={variable}
      value={values[variable.name]}
      onChange={(value) => setValues({ ...values, [variable.name]: value })}
    />
  )
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    const port = template?.defaultPort
    create.mutate({
      name: name.trim(),
      ...(template ? { game: template.id, variables: values } : {}),
      ...(port === undefined
        ? {}
        : {
            port: freePort(
              port,
              servers.map((each) => each.port),
            ),
          }),
    })
  }
  return (
    <form onSubmit={submit} className={`card ${css.form}`}>
      <TextInput
        label={t`Name`}
        description={t`What you call it; players do not see it`}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        maxLength={191}
        required
        withAsterisk={false}
        data-autofocus
      />
      {shown.filter(isAsked).map(field)}
      {shown.some((variable) => !isAsked(variable)) && (
        <details className={css.more}>
          <summary>
            <Trans>More settings; they have good values already</Trans>
          </summary>
          <div className="stack">{shown.filter((variable) => !isAsked(variable)).map(field)}</div>
        </details>
      )}
      {create.error && <Problem error={create.error} />}
      <div className="row">
        <Button type="submit" loading={create.isPending} disabled={name.trim() === ''}>
          {template ? <Trans>Create and start</Trans> : <Trans>Create</Trans>}
        </Button>
        <Button component={Link} href="/servers/new" variant="default">
          <Trans>Another game</Trans>
        </Button>
      </div>
    </form>
  )
}

/** Ends on the console, which shows how it goes on. What goes wrong then leaves the server, and the reason in a message. */
function useCreateAndStart(template: StoredTemplate | null) {
  const { t } = useLingui()
  const [, navigate] = useLocation()
  const create = useCreateServer()
  return {
    ...create,
    mutate: (server: NewServer) =>
      create.mutate(server, {
        onSuccess: ({ id }) => {
          navigate(`/servers/${id}`)
          if (!template) return
          installAndStart(id, template).catch((error: unknown) => showFailure(t`It could not be started`, error))
        },
      }),
  }
}

/** The service starts it once it is installed, whether this page is open by then or not. */
async function installAndStart(serverId: string, { install = [] }: StoredTemplate): Promise<void> {
  if (install.length > 0) await client.servers.install(serverId, { start: true })
  else await client.power.start(serverId)
}
