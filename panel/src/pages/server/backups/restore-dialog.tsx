import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Button, Checkbox, NativeSelect, Radio } from '@mantine/core'
import { useState } from 'react'
import type { Backup, Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { useBackupActions } from '../../../api/backups.ts'
import { useServers } from '../../../api/servers.ts'
import { Dialog } from '../../../components/dialog.tsx'
import { DialogButtons } from '../../../components/dialog-buttons.tsx'
import { Problem } from '../../../components/problem.tsx'
import { showToast } from '../../../components/toasts.tsx'
import { useFollowJob } from '../jobs/follow-job.ts'
import { RestoreStatement } from './restore-statement.tsx'

interface Props {
  server: Server
  backup: Backup | null
  /** Null: everything. */
  paths: string[] | null
  onClose: () => void
}

export function RestoreDialog({ server, backup, paths, onClose }: Props) {
  const { t } = useLingui()
  return (
    <Dialog opened={backup !== null} onClose={onClose} title={t`Restore ${backup?.name ?? ''}`}>
      {backup && <RestoreForm server={server} backup={backup} paths={paths} onClose={onClose} />}
    </Dialog>
  )
}

export type RestoreMode = 'replace' | 'merge'

function RestoreForm({ server, backup, paths, onClose }: Props & { backup: Backup }) {
  const { t } = useLingui()
  const { restore } = useBackupActions(server.id)
  const { data: servers = [server] } = useServers()
  const [targetId, setTargetId] = useState(server.id)
  const target = servers.find(({ id }) => id === targetId) ?? server
  const follow = useFollowJob(target.id)
  const mayStop = useMay()('power:write')
  const [mode, setMode] = useState<RestoreMode>('replace')
  const [safetyBackup, setSafetyBackup] = useState(true)
  const { state } = target.power
  const isOn = state === 'running' || state === 'starting' || state === 'stopping'
  const submit = async (event: React.FormEvent) => {
    event.preventDefault()
    const { name } = backup
    const ending = { onDone: () => showToast(t`${name} is restored.`), failed: t`${name} could not be restored` }
    const chosen = {
      ...{ id: backup.id, mode, safetyBackup },
      ...(paths ? { paths } : {}),
      ...(isOn ? { stop: true } : {}),
      ...(target.id === server.id ? {} : { targetServerId: target.id }),
    }
    const job = await restore.mutateAsync(chosen).catch(() => null)
    if (job === null) return
    onClose()
    await follow(job, ending)
  }
  return (
    <form onSubmit={(event) => void submit(event)} className="stack">
      {paths && (
        <p>
          <Plural
            value={paths.length}
            one="The chosen file or folder is put back, and nothing else is touched."
            other="The # chosen files and folders are put back, and nothing else is touched."
          />
        </p>
      )}
      {servers.length > 1 && (
        <NativeSelect
          label={t`Into`}
          value={target.id}
          data={servers.map(({ id, name }) => ({
            value: id,
            label: id === server.id ? t`${name}, this server` : name,
          }))}
          onChange={(event) => setTargetId(event.currentTarget.value)}
        />
      )}
      <ModeChoice mode={mode} onChange={setMode} />
      <Checkbox
        label={t`Back up what is there now first`}
        description={t`The way back, if this was the wrong one`}
        checked={safetyBackup}
        onChange={(event) => setSafetyBackup(event.currentTarget.checked)}
      />
      <RestoreStatement
        server={server}
        target={target}
        backup={backup}
        paths={paths}
        mode={mode}
        hasSafety={safetyBackup}
        isStopped={isOn && mayStop}
      />
      {isOn && !mayStop && (
        <p className="soft">
          <Trans>
            The game runs, and you may not stop it. Ask somebody who may: it would write over what is put back.
          </Trans>
        </p>
      )}
      {restore.error && <Problem error={restore.error} />}
      <DialogButtons onClose={onClose}>
        <Button type="submit" loading={restore.isPending} disabled={isOn && !mayStop}>
          {isOn ? <Trans>Stop the game and restore</Trans> : <Trans>Restore</Trans>}
        </Button>
      </DialogButtons>
    </form>
  )
}

function ModeChoice({ mode, onChange }: { mode: RestoreMode; onChange: (mode: RestoreMode) => void }) {
  const { t } = useLingui()
  return (
    <Radio.Group value={mode} onChange={(value) => onChange(value as RestoreMode)} label={t`What happens to the files`}>
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
  )
}
