import { useLingui } from '@lingui/react/macro'
import type { FileEntry } from '../../../../../src/sdk/index.ts'
import { useFileActions } from '../../../api/files.ts'
import { NameDialog } from './name-dialog.tsx'

export type Dialog = { kind: 'folder' } | { kind: 'rename'; entry: FileEntry }

interface Props {
  serverId: string
  directory: string
  dialog: Dialog
  onClose: () => void
}

/** What is asked for in this folder before something is done. */
export function Dialogs({ serverId, directory, dialog, onClose }: Props) {
  const { t } = useLingui()
  const { makeFolder, rename } = useFileActions(serverId)
  if (dialog.kind === 'folder') {
    return (
      <NameDialog
        title={t`New folder`}
        action={t`Create`}
        initial=""
        error={makeFolder.error}
        isPending={makeFolder.isPending}
        onSubmit={(name) => makeFolder.mutate({ path: directory, name }, { onSuccess: onClose })}
        onClose={onClose}
      />
    )
  }
  const { name } = dialog.entry
  return (
    <NameDialog
      title={t`Rename ${name}`}
      action={t`Rename`}
      initial={name}
      error={rename.error}
      isPending={rename.isPending}
      onSubmit={(to) => rename.mutate({ directory, from: name, to }, { onSuccess: onClose })}
      onClose={onClose}
    />
  )
}
