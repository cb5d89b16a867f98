import { useLingui } from '@lingui/react/macro'
import { NativeSelect, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { ArchiveFormat } from '../../../../../../src/sdk/index.ts'
import { joinPath, useFileJobs } from '../../../../api/files.ts'
import { showToast } from '../../../../components/toasts.tsx'
import { useFollowJob } from '../../jobs/follow-job.ts'
import type { Place } from './dialogs.tsx'
import { FolderField } from './folder-picker.tsx'
import { FormDialog } from './form-dialog.tsx'

const FORMATS: readonly ArchiveFormat[] = ['zip', 'tar.gz', 'tar.zst', 'tar']

export function PackDialog({ serverId, directory, onClose, names }: Place & { names: readonly string[] }) {
  const { t } = useLingui()
  const { pack } = useFileJobs(serverId)
  const follow = useFollowJob(serverId)
  const [name, setName] = useState(names.length === 1 ? (names[0] ?? '') : t`archive`)
  const [folder, setFolder] = useState(directory)
  const [format, setFormat] = useState<ArchiveFormat>('zip')
  const file = `${name}.${format}`
  const submit = async () => {
    const target = joinPath(folder, file)
    const job = await pack.mutateAsync({ root: directory, files: [...names], format, target }).catch(() => null)
    if (!job) return
    onClose()
    await follow(job, { onDone: () => showToast(t`${file} is packed.`), failed: t`${file} could not be packed` })
  }
  return (
    <FormDialog
      title={names.length === 1 ? t`Pack ${names[0]}` : t`Pack ${names.length} items`}
      action={t`Pack`}
      error={pack.error}
      isPending={pack.isPending}
      isGood={name.trim() !== '' && !name.includes('/')}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <TextInput
        label={t`Name of the archive`}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={name.includes('/') ? t`A name has no slash` : undefined}
        data-autofocus
      />
      <NativeSelect
        label={t`Format`}
        value={format}
        data={FORMATS.map((value) => ({ value, label: `.${value}` }))}
        onChange={(event) => setFormat(event.currentTarget.value as ArchiveFormat)}
      />
      <FolderField label={t`Into`} serverId={serverId} folder={folder} onChange={setFolder} />
    </FormDialog>
  )
}
