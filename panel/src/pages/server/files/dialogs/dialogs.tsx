import { useLingui } from '@lingui/react/macro'
import { useLocation } from 'wouter'
import type { FileEntry } from '../../../../../../src/sdk/index.ts'
import { joinPath, useFileActions } from '../../../../api/files.ts'
import { hrefOf } from '../paths.ts'
import { BatchRename } from './batch-rename.tsx'
import { ModeDialog } from './mode-dialog.tsx'
import { MoveDialog } from './move-dialog.tsx'
import { NameDialog } from './name-dialog.tsx'
import { PackDialog } from './pack-dialog.tsx'
import { PullDialog } from './pull-dialog.tsx'
import { UnpackDialog } from './unpack-dialog.tsx'

export type Dialog =
  | { kind: 'folder' }
  | { kind: 'file' }
  | { kind: 'pull' }
  | { kind: 'batch-rename'; entries: readonly FileEntry[] }
  | { kind: 'move'; entries: readonly FileEntry[] }
  | { kind: 'mode'; entries: readonly FileEntry[] }
  | { kind: 'pack'; entries: readonly FileEntry[] }
  | { kind: 'unpack'; entry: FileEntry }

interface Props {
  serverId: string
  directory: string
  /** Names that are there already. */
  taken: ReadonlySet<string>
  dialog: Dialog
  onClose: () => void
}

/** What is asked for in this folder before something is done. */
export function Dialogs({ serverId, directory, taken, dialog, onClose }: Props) {
  const place = { serverId, directory, onClose }
  switch (dialog.kind) {
    case 'folder':
      return <NewFolder {...place} />
    case 'file':
      return <NewFile {...place} />
    case 'batch-rename':
      return <BatchRename {...place} names={dialog.entries.map(({ name }) => name)} taken={taken} />
    case 'move':
      return <MoveDialog {...place} names={dialog.entries.map(({ name }) => name)} />
    case 'mode':
      return <ModeDialog {...place} entries={dialog.entries} />
    case 'pack':
      return <PackDialog {...place} names={dialog.entries.map(({ name }) => name)} />
    case 'unpack':
      return <UnpackDialog {...place} name={dialog.entry.name} />
    case 'pull':
      return <PullDialog {...place} />
  }
}

export interface Place {
  serverId: string
  directory: string
  onClose: () => void
}

function NewFolder({ serverId, directory, onClose }: Place) {
  const { t } = useLingui()
  const { makeFolder } = useFileActions(serverId)
  return (
    <NameDialog
      title={t`New folder`}
      action={t`Create`}
      error={makeFolder.error}
      isPending={makeFolder.isPending}
      onSubmit={(name) => makeFolder.mutate({ path: directory, name }, { onSuccess: onClose })}
      onClose={onClose}
    />
  )
}

function NewFile({ serverId, directory, onClose }: Place) {
  const { t } = useLingui()
  const [, navigate] = useLocation()
  const { makeFile } = useFileActions(serverId)
  const open = (name: string) => navigate(`${hrefOf(serverId, directory)}?edit=${encodeURIComponent(name)}`)
  return (
    <NameDialog
      title={t`New file`}
      action={t`Create`}
      error={makeFile.error}
      isPending={makeFile.isPending}
      onSubmit={(name) => makeFile.mutate(joinPath(directory, name), { onSuccess: () => open(name) })}
      onClose={onClose}
    />
  )
}
