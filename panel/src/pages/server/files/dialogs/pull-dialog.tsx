import { useLingui } from '@lingui/react/macro'
import { TextInput } from '@mantine/core'
import { useState } from 'react'
import { useFileJobs } from '../../../../api/files.ts'
import { showToast } from '../../../../components/toasts.tsx'
import { useFollowJob } from '../../jobs/follow-job.ts'
import type { Place } from './dialogs.tsx'
import { FolderField } from './folder-picker.tsx'
import { FormDialog } from './form-dialog.tsx'

export function PullDialog({ serverId, directory, onClose }: Place) {
  const { t } = useLingui()
  const { pull } = useFileJobs(serverId)
  const follow = useFollowJob(serverId)
  const [url, setUrl] = useState('')
  const [name, setName] = useState('')
  const [folder, setFolder] = useState(directory)
  const submit = async () => {
    const request = { url: url.trim(), directory: folder, ...(name.trim() ? { name: name.trim() } : {}) }
    const job = await pull.mutateAsync(request).catch(() => null)
    if (!job) return
    onClose()
    await follow(job, { onDone: () => showToast(t`The file has arrived.`), failed: t`The file could not be fetched` })
  }
  return (
    <FormDialog
      title={t`Fetch a file from an address`}
      action={t`Fetch`}
      error={pull.error}
      isPending={pull.isPending}
      isGood={/^https?:\/\/./i.test(url.trim())}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <TextInput
        label={t`Address`}
        placeholder="https://"
        inputMode="url"
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value)}
        data-autofocus
      />
      <TextInput
        label={t`Name`}
        placeholder={t`As in the address`}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <FolderField label={t`Into`} serverId={serverId} folder={folder} onChange={setFolder} />
    </FormDialog>
  )
}
