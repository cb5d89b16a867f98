import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Button, Tooltip } from '@mantine/core'
import { useRef } from 'react'
import type { FileEntry } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/session.ts'
import { Icon, type IconName } from '../../../components/icon.tsx'
import type { DroppedFile } from './dropped.ts'

interface Props {
  chosen: readonly FileEntry[]
  onUpload: (files: DroppedFile[]) => void
  onNewFolder: () => void
  onDownload: (entry: FileEntry) => void
  onRename: () => void
  onDelete: () => void
}

export function FileToolbar({ chosen, onUpload, onNewFolder, onDownload, onRename, onDelete }: Props) {
  const { t } = useLingui()
  const may = useMay()
  const picker = useRef<HTMLInputElement>(null)
  const [first] = chosen
  const single = chosen.length === 1 ? first : undefined
  const mayWrite = may('files:write')
  return (
    <div className="row">
      {single?.kind === 'file' && <Tool icon="download" label={t`Download`} onClick={() => onDownload(single)} />}
      {single && mayWrite && <Tool icon="file" label={t`Rename (F2)`} onClick={onRename} />}
      {chosen.length > 0 && mayWrite && <Tool icon="trash" label={t`Delete (Del)`} onClick={onDelete} />}
      {mayWrite && (
        <>
          <Button variant="default" leftSection={<Icon name="folder" size={16} />} onClick={onNewFolder}>
            <Trans>New folder</Trans>
          </Button>
          <Button leftSection={<Icon name="upload" size={16} />} onClick={() => picker.current?.click()}>
            <Trans>Upload</Trans>
          </Button>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label={t`Files to upload`}
            onChange={({ currentTarget }) => {
              onUpload([...(currentTarget.files ?? [])].map((file) => ({ name: file.name, file })))
              currentTarget.value = ''
            }}
          />
        </>
      )}
    </div>
  )
}

function Tool({ icon, label, onClick }: { icon: IconName; label: string; onClick: () => void }) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="default" size={36} aria-label={label} onClick={onClick}>
        <Icon name={icon} size={16} />
      </ActionIcon>
    </Tooltip>
  )
}
