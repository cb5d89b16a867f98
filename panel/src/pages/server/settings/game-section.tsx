import { Trans, useLingui } from '@lingui/react/macro'
import { Button, NativeSelect } from '@mantine/core'
import { useState } from 'react'
import type { Server, ServerChange, StoredTemplate, TemplateVariable } from '../../../../../src/sdk/index.ts'
import { useTemplates } from '../../../api/servers.ts'
import { isShown, VariableField, type VariableValues } from '../../../components/variable-field.tsx'
import { useDraft } from './draft.ts'
import { SectionForm } from './section.tsx'
import css from './settings-tab.module.css'
import { rulesOf } from './variable-rules.ts'

interface Props {
  server: Server
  /** Null: the server has no game, or one without a template. */
  template: StoredTemplate | null
  mayChange: boolean
}

/** Which game it is. Values that the other template does not take are dropped by the service. */
export function GameSection({ server, mayChange }: Props) {
  const { t } = useLingui()
  const { data: templates = [] } = useTemplates()
  const { values, isChanged, set, reset } = useDraft({ game: server.game ?? '' })
  const choices = [
    { value: '', label: t`Own files` },
    ...templates.map(({ id, name }) => ({ value: id, label: name })),
    ...(server.game === null || templates.some(({ id }) => id === server.game)
      ? []
      : [{ value: server.game, label: server.game }]),
  ]
  return (
    <SectionForm
      title={t`Game`}
      text={<Trans>Another game leaves the files as they are. Install it below once it is saved.</Trans>}
      serverId={server.id}
      mayChange={mayChange}
      change={isChanged ? { game: values.game === '' ? null : values.game } : null}
      onReset={reset}
    >
      {(faultAt) => (
        <NativeSelect
          label={t`Game`}
          data={choices}
          value={values.game}
          error={faultAt('/game')}
          onChange={(event) => set({ game: event.currentTarget.value })}
        />
      )}
    </SectionForm>
  )
}

/** What its template lets people set. */
export function VariablesSection({ server, template, mayChange }: Props) {
  const { t } = useLingui()
  /** Null: back to the default. */
  const [draft, setDraft] = useState<Record<string, VariableValues[string] | null>>({})
  const shown = (template?.variables ?? []).filter(isShown)
  if (shown.length === 0) return null
  const changes = Object.entries(draft).filter(([name, value]) => value !== (server.variables[name] ?? undefined))
  const change: ServerChange = { variables: Object.fromEntries(changes) }
  return (
    <SectionForm
      title={t`Settings of the game`}
      text={<Trans>A game that runs takes them with its next start.</Trans>}
      serverId={server.id}
      mayChange={mayChange}
      change={changes.length > 0 ? change : null}
      onReset={() => setDraft({})}
    >
      {(faultAt) =>
        shown.map((variable) => {
          const { name } = variable
          const stored = server.variables[name]
          return (
            <VariableRow
              key={name}
              variable={variable}
              value={draft[name] === null ? undefined : (draft[name] ?? stored ?? undefined)}
              isSet={draft[name] !== null && (stored !== undefined || draft[name] !== undefined)}
              isHidden={stored === null && draft[name] === undefined}
              error={faultAt(`/variables/${name}`)}
              onChange={(value) => setDraft({ ...draft, [name]: value })}
            />
          )
        })
      }
    </SectionForm>
  )
}

interface VariableRowProps {
  variable: TemplateVariable
  value: VariableValues[string] | undefined
  /** Whether it has a value of its own, rather than the default. */
  isSet: boolean
  /** A secret: it has a value, which nobody is shown. */
  isHidden: boolean
  error: string | null
  onChange: (value: VariableValues[string] | null) => void
}

function VariableRow({ variable, value, isSet, isHidden, error, onChange }: VariableRowProps) {
  const { t } = useLingui()
  const rules = rulesOf(variable).map((rule) => t(rule))
  const title = variable.title ?? variable.name
  return (
    <div>
      <VariableField
        variable={variable}
        value={isHidden ? '' : value}
        error={error}
        onChange={onChange}
        {...(isHidden ? { placeholder: t`Set; type to replace it` } : {})}
      />
      <p className={`small faint ${css.rules}`} hidden={rules.length === 0 && !isSet}>
        <span className="grow">{rules.join(' · ')}</span>
        {isSet && (
          <Button
            size="compact-xs"
            variant="subtle"
            aria-label={t`${title}: back to the default`}
            onClick={() => onChange(null)}
          >
            <Trans>Default</Trans>
          </Button>
        )}
      </p>
    </div>
  )
}
