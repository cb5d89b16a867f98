import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Radio, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { MadeInvitation } from '../../../../src/sdk/index.ts'
import { useAccessActions } from '../../api/access/people.ts'
import { useMay } from '../../api/access/session.ts'
import { useServers } from '../../api/servers.ts'
import { Dialog } from '../../components/dialog.tsx'
import { Moment } from '../../components/moment.tsx'
import { Problem } from '../../components/problem.tsx'
import { ShownOnce } from '../../components/shown-once.tsx'
import { RIGHT_MEANINGS, RIGHT_NAMES } from './right-names.ts'
import { RIGHTS, type Right, scopesOf } from './rights.ts'
import { ServerChoice } from './server-choice.tsx'

export function InviteDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { t } = useLingui()
  const [made, setMade] = useState<MadeInvitation | null>(null)
  const close = () => {
    onClose()
    setMade(null)
  }
  return (
    <Dialog opened={isOpen} onClose={close} title={made ? t`The link for ${made.name}` : t`Invite somebody`} size="lg">
      {made ? <MadeLink made={made} onClose={close} /> : <InviteForm onMade={setMade} />}
    </Dialog>
  )
}

function MadeLink({ made, onClose }: { made: MadeInvitation; onClose: () => void }) {
  const { t } = useLingui()
  return (
    <ShownOnce secret={made.url} copyLabel={t`Copy the link`} onClose={onClose}>
      <Trans>
        Send it to nobody else: whoever opens it first is in. It is good once, ends <Moment at={made.expiresAt} />, and
        is not shown again.
      </Trans>
    </ShownOnce>
  )
}

function InviteForm({ onMade }: { onMade: (made: MadeInvitation) => void }) {
  const { t } = useLingui()
  const { data: known = [] } = useServers()
  const { invite } = useAccessActions()
  const [name, setName] = useState('')
  const [right, setRight] = useState<Right>('look')
  const [servers, setServers] = useState<'*' | string[]>(known.length === 1 ? known.map(({ id }) => id) : [])
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    invite.mutate({ name: name.trim(), scopes: scopesOf(right), servers }, { onSuccess: onMade })
  }
  return (
    <form onSubmit={submit} className="stack">
      <TextInput
        label={t`Name`}
        description={t`Whom you invite; activity shows it`}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        maxLength={191}
        required
        withAsterisk={false}
        data-autofocus
      />
      <ServerChoice value={servers} onChange={setServers} />
      <RightChoice value={right} onChange={setRight} />
      {invite.error && <Problem error={invite.error} />}
      <div className="row">
        <Button type="submit" loading={invite.isPending} disabled={name.trim() === '' || servers.length === 0}>
          <Trans>Make the link</Trans>
        </Button>
      </div>
    </form>
  )
}

function RightChoice({ value, onChange }: { value: Right; onChange: (right: Right) => void }) {
  const { t } = useLingui()
  const may = useMay()
  return (
    <Radio.Group label={t`What they may do`} value={value} onChange={(chosen) => onChange(chosen as Right)}>
      <div className="stack-tight">
        {RIGHTS.map((right) => (
          <Radio
            key={right}
            value={right}
            label={t(RIGHT_NAMES[right])}
            description={t(RIGHT_MEANINGS[right])}
            // Nobody can invite to more than they have.
            disabled={!scopesOf(right).every(may)}
          />
        ))}
      </div>
    </Radio.Group>
  )
}
