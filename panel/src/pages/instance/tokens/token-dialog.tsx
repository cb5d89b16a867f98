import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Checkbox, NativeSelect, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { MintedToken, Scope } from '../../../../../src/sdk/index.ts'
import { useAccessActions } from '../../../api/access/people.ts'
import { useMay } from '../../../api/access/session.ts'
import { Dialog } from '../../../components/dialog.tsx'
import { Problem } from '../../../components/problem.tsx'
import { ShownOnce } from '../../../components/shown-once.tsx'
import { ServerChoice } from '../../people/server-choice.tsx'
import { endOf, GRANTABLE, LIFETIMES, type Lifetime } from './token-choices.ts'
import css from './token-dialog.module.css'

export function TokenDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { t } = useLingui()
  const [made, setMade] = useState<MintedToken | null>(null)
  const close = () => {
    onClose()
    setMade(null)
  }
  return (
    <Dialog opened={isOpen} onClose={close} title={made ? made.name : t`New token`} size="lg">
      {made ? <MadeToken made={made} onClose={close} /> : <TokenForm onMade={setMade} />}
    </Dialog>
  )
}

function MadeToken({ made, onClose }: { made: MintedToken; onClose: () => void }) {
  const { t } = useLingui()
  return (
    <ShownOnce secret={made.token} copyLabel={t`Copy the token`} onClose={onClose}>
      <Trans>Keep it where your program reads it. It is not shown again.</Trans>
    </ShownOnce>
  )
}

function TokenForm({ onMade }: { onMade: (made: MintedToken) => void }) {
  const { t } = useLingui()
  const { createToken } = useAccessActions()
  const [name, setName] = useState('')
  const [scopes, setScopes] = useState<Scope[]>([])
  const [servers, setServers] = useState<'*' | string[]>([])
  const [lifetime, setLifetime] = useState<Lifetime>('year')
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    const expiresAt = endOf(lifetime, new Date())
    createToken.mutate({ name: name.trim(), scopes, servers, expiresAt }, { onSuccess: onMade })
  }
  return (
    <form onSubmit={submit} className="stack">
      <TextInput
        label={t`Name`}
        description={t`Which program uses it; activity shows it`}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        maxLength={191}
        required
        withAsterisk={false}
        data-autofocus
      />
      <ServerChoice value={servers} onChange={setServers} />
      <ScopeChoice value={scopes} onChange={setScopes} />
      <NativeSelect
        label={t`Good for`}
        value={lifetime}
        onChange={(event) => setLifetime(event.currentTarget.value as Lifetime)}
        data={Object.entries(LIFETIMES).map(([value, { label }]) => ({ value, label: t(label) }))}
      />
      {createToken.error && <Problem error={createToken.error} />}
      <div className="row">
        <Button
          type="submit"
          loading={createToken.isPending}
          disabled={name.trim() === '' || scopes.length === 0 || servers.length === 0}
        >
          <Trans>Make the token</Trans>
        </Button>
      </div>
    </form>
  )
}

function ScopeChoice({ value, onChange }: { value: Scope[]; onChange: (scopes: Scope[]) => void }) {
  const { t } = useLingui()
  const may = useMay()
  return (
    <Checkbox.Group label={t`Scopes`} value={value} onChange={(chosen) => onChange(chosen as Scope[])}>
      <div className={css.scopes}>
        {GRANTABLE.filter(may).map((scope) => (
          <Checkbox key={scope} value={scope} label={scope === '*' ? t`* (everything)` : scope} />
        ))}
      </div>
    </Checkbox.Group>
  )
}
