import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Checkbox, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useBackupActions } from '../../../api/backups.ts'
import { Dialog } from '../../../components/dialog.tsx'
import { DialogButtons } from '../../../components/dialog-buttons.tsx'
import { Problem } from '../../../components/problem.tsx'
import { PatternsField } from './patterns-field.tsx'

interface Props {
  server: Server
  isOpen: boolean
  onClose: () => void
}

export function CreateBackup({ server, isOpen, onClose }: Props) {
  const { t } = useLingui()
  return (
    <Dialog opened={isOpen} onClose={onClose} title={t`Back up ${server.name}`}>
      <CreateForm server={server} onClose={onClose} />
    </Dialog>
  )
}

function CreateForm({ server, onClose }: Omit<Props, 'isOpen'>) {
  const { t } = useLingui()
  const { create } = useBackupActions(server.id)
  const [name, setName] = useState('')
  const [ignored, setIgnored] = useState('')
  const [isLocked, setLocked] = useState(false)
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    const chosen = { ...(name.trim() ? { name: name.trim() } : {}), ...(ignored.trim() ? { ignored } : {}), isLocked }
    create.mutate(chosen, { onSuccess: onClose })
  }
  return (
    <form onSubmit={submit} className="stack">
      <TextInput
        label={t`Name`}
        placeholder={t`The time, by default`}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        maxLength={191}
        data-autofocus
      />
      <PatternsField serverId={server.id} value={ignored} onChange={setIgnored} />
      <Checkbox
        label={t`Lock it`}
        description={t`Nobody deletes it, and no retention rule, until it is unlocked`}
        checked={isLocked}
        onChange={(event) => setLocked(event.currentTarget.checked)}
      />
      {create.error && <Problem error={create.error} />}
      <DialogButtons onClose={onClose}>
        <Button type="submit" loading={create.isPending}>
          <Trans>Back up</Trans>
        </Button>
      </DialogButtons>
    </form>
  )
}
