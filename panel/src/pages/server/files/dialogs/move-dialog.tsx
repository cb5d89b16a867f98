import { useLingui } from '@lingui/react/macro'
import { useState } from 'react'
import { joinPath, useFileActions } from '../../../../api/files.ts'
import { showFailure, showToast } from '../../../../components/toasts.tsx'
import type { Place } from './dialogs.tsx'
import { FolderPicker } from './folder-picker.tsx'
import { FormDialog } from './form-dialog.tsx'

export function MoveDialog({ serverId, directory, onClose, names }: Place & { names: readonly string[] }) {
  const { t } = useLingui()
  const { move } = useFileActions(serverId)
  const [folder, setFolder] = useState(directory)
  const sources = names.map((name) => joinPath(directory, name))
  // A folder cannot be moved into itself.
  const isInside = sources.some((path) => folder === path || folder.startsWith(`${path}/`))
  const moves = names.map((name) => ({ from: joinPath(directory, name), to: joinPath(folder, name) }))
  const undo = () =>
    move.mutate(
      moves.map(({ from, to }) => ({ from: to, to: from })),
      { onError: (error) => showFailure(t`It could not be put back`, error) },
    )
  const submit = () =>
    move.mutate(moves, {
      onSuccess: () => {
        onClose()
        showToast(t`Moved to ${folder}`, { label: t`Undo`, run: undo })
      },
    })
  return (
    <FormDialog
      title={names.length === 1 ? t`Move ${names[0]}` : t`Move ${names.length} items`}
      action={t`Move here`}
      error={move.error}
      isPending={move.isPending}
      isGood={folder !== directory && !isInside}
      onSubmit={submit}
      onClose={onClose}
    >
      <FolderPicker serverId={serverId} folder={folder} onChange={setFolder} />
    </FormDialog>
  )
}
