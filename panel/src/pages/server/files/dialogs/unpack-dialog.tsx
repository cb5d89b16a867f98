import { useLingui } from '@lingui/react/macro'
import { Checkbox } from '@mantine/core'
import { useState } from 'react'
import { joinPath, useFileJobs } from '../../../../api/files.ts'
import { showToast } from '../../../../components/toasts.tsx'
import { useFollowJob } from '../../jobs/follow-job.ts'
import type { Place } from './dialogs.tsx'
import { FolderPicker } from './folder-picker.tsx'
import { FormDialog } from './form-dialog.tsx'

export function UnpackDialog({ serverId, directory, onClose, name }: Place & { name: string }) {
  const { t } = useLingui()
  const { unpack } = useFileJobs(serverId)
  const follow = useFollowJob(serverId)
  const [folder, setFolder] = useState(directory)
  const [overwrite, setOverwrite] = useState(false)
  const submit = async () => {
    const request = { path: joinPath(directory, name), directory: folder, overwrite }
    const job = await unpack.mutateAsync(request).catch(() => null)
    if (!job) return
    onClose()
    await follow(job, {
      onDone: () => showToast(t`${name} is unpacked.`),
      failed: t`${name} could not be unpacked. Nothing is left of it`,
    })
  }
  return (
    <FormDialog
      title={t`Unpack ${name}`}
      action={t`Unpack here`}
      error={unpack.error}
      isPending={unpack.isPending}
      isGood
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <FolderPicker serverId={serverId} folder={folder} onChange={setFolder} />
      <Checkbox
        label={t`Replace what is in the way`}
        description={t`What is replaced goes to the trash`}
        checked={overwrite}
        onChange={(event) => setOverwrite(event.currentTarget.checked)}
      />
    </FormDialog>
  )
}
