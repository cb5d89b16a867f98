import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Checkbox, Modal, Radio } from '@mantine/core'
import { useState } from 'react'
import type { Backup, Server } from '../../../../../src/sdk/index.ts'
import { useBackupActions } from '../../../api/backups.ts'
import { Problem } from '../../../components/problem.tsx'
import { showToast } from '../../../components/toasts.tsx'

interface Props {
  server: Server
  backup: Backup | null
  onClose: () => void
}

export function RestoreDialog({ server, backup, onClose }: Props) {
  const { t } = useLingui()
  return (
    <Modal opened={backup !== null} onClose={onClose} title={t`Restore ${backup?.name ?? ''}`}>
      {backup && <RestoreForm server={server} backup={backup} onClose={onClose} />}
    </Modal>
  )
}

function RestoreForm({ server, backup, onClose }: Props & { backup: Backup }) {
  const { t } = useLingui()
  const { restore } = useBackupActions(server.id)
  const [mode, setMode] = useState<'replace' | 'merge'>('replace')
  const [safetyBackup, setSafetyBackup] = useState(true)
  const { state } = server.power
  const isOn = state === 'running' || state === 'starting' || state === 'stopping'
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    restore.mutate(
      { id: backup.id, mode, safetyBackup },
      {
        onSuccess: () => {
          showToast(t`${backup.name} is restored.`)
          onClose()
        },
      },
    )
  }
  return (
    <form onSubmit={submit} className="stack">
      <Radio.Group
        value={mode}
        onChange={(value) => setMode(value as typeof mode)}
        label={t`What happens to the files`}
      >
        <div className="stack">
          <Radio
            value="replace"
            mt="xs"
            label={t`Exactly as in the backup`}
            description={t`What was made since then goes to the trash`}
          />
          <Radio
            value="merge"
            label={t`Put back what the backup has`}
            description={t`What was made since then stays beside it`}
          />
        </div>
      </Radio.Group>
      <Checkbox
        label={t`Back up what is there now first`}
        description={t`The way back, if this was the wrong one`}
        checked={safetyBackup}
        onChange={(event) => setSafetyBackup(event.currentTarget.checked)}
      />
      {isOn && (
        <p className="soft">
          <Trans>The game runs. Stop it first: it would write over what is put back.</Trans>
        </p>
      )}
      {restore.error && <Problem error={restore.error} />}
      <div className="row">
        <Button type="submit" loading={restore.isPending} disabled={isOn}>
          <Trans>Restore</Trans>
        </Button>
        <Button variant="default" onClick={onClose}>
          <Trans>Cancel</Trans>
        </Button>
      </div>
    </form>
  )
}
