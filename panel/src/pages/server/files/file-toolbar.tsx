import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Button, Menu, Tooltip } from '@mantine/core'
import { useRef } from 'react'
import { useLocation } from 'wouter'
import type { FileEntry } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { Icon, type IconName } from '../../../components/icon.tsx'
import type { Dialog } from './dialogs/dialogs.tsx'
import css from './files-tab.module.css'
import { hrefOf } from './paths.ts'
import type { DroppedFile } from './uploads/dropped.ts'

interface Props {
  serverId: string
  directory: string
  chosen: readonly FileEntry[]
  onUpload: (files: DroppedFile[]) => void
  onDialog: (dialog: Dialog) => void
  onDownload: (entry: FileEntry) => void
  onRename: () => void
  onCopy: () => void
  onDelete: () => void
}

export function FileToolbar(props: Props) {
  const mayWrite = useMay()('files:write')
  return (
    <div className="row">
      {props.chosen.length > 0 && (
        <div className={css.selection}>
          <SelectionTools {...props} />
        </div>
      )}
      <ViewMenu {...props} />
      {mayWrite && <NewMenu {...props} />}
      {mayWrite && <UploadButton onUpload={props.onUpload} />}
    </div>
  )
}

/** What can be done with the chosen entries. */
function SelectionTools({ serverId, directory, chosen, onDialog, onDownload, onRename, onCopy, onDelete }: Props) {
  const { t } = useLingui()
  const may = useMay()
  const [, navigate] = useLocation()
  const mayWrite = may('files:write')
  const [first] = chosen
  const single = chosen.length === 1 ? first : undefined
  const show = (what: string) => (entry: FileEntry) =>
    navigate(`${hrefOf(serverId, directory)}?${what}=${encodeURIComponent(entry.name)}`)
  return (
    <>
      {single && <Tool icon="download" label={t`Download`} onClick={() => onDownload(single)} />}
      {mayWrite && <Tool icon="edit" label={t`Rename (F2)`} onClick={onRename} />}
      {mayWrite && <Tool icon="trash" label={t`Delete (Del)`} onClick={onDelete} />}
      {(mayWrite || single) && (
        <Menu position="bottom-end">
          <Menu.Target>
            <ActionIcon variant="default" size={36} aria-label={t`More for what is selected`}>
              <Icon name="dots" size={16} />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            {mayWrite && (
              <>
                <Item icon="copy" label={t`Copy`} onClick={onCopy} />
                <Item icon="move" label={t`Move…`} onClick={() => onDialog({ kind: 'move', entries: chosen })} />
                <Item icon="key" label={t`Mode…`} onClick={() => onDialog({ kind: 'mode', entries: chosen })} />
                <Item icon="archive" label={t`Pack…`} onClick={() => onDialog({ kind: 'pack', entries: chosen })} />
              </>
            )}
            {mayWrite && single && isArchive(single) && (
              <Item icon="folder" label={t`Unpack…`} onClick={() => onDialog({ kind: 'unpack', entry: single })} />
            )}
            {single?.kind === 'file' && may('backups:read') && (
              <Item icon="history" label={t`Versions`} onClick={() => show('versions')(single)} />
            )}
          </Menu.Dropdown>
        </Menu>
      )}
    </>
  )
}

const isArchive = ({ kind, name }: FileEntry) =>
  kind === 'file' && /\.(zip|jar|mrpack|tar|tgz|tar\.gz|tar\.zst)$/i.test(name)

function NewMenu({ onDialog, onUpload }: Props) {
  const { t } = useLingui()
  const picker = useRef<HTMLInputElement>(null)
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" leftSection={<Icon name="plus" size={16} />}>
            <Trans>New</Trans>
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Item icon="folder" label={t`New folder`} onClick={() => onDialog({ kind: 'folder' })} />
          <Item icon="file" label={t`New file`} onClick={() => onDialog({ kind: 'file' })} />
          <Item icon="upload" label={t`Upload a folder`} onClick={() => picker.current?.click()} />
          <Item icon="link" label={t`From an address`} onClick={() => onDialog({ kind: 'pull' })} />
        </Menu.Dropdown>
      </Menu>
      <input
        ref={(input) => {
          picker.current = input
          // React does not know it.
          input?.toggleAttribute('webkitdirectory', true)
        }}
        type="file"
        hidden
        aria-label={t`Folder to upload`}
        onChange={({ currentTarget }) => {
          onUpload([...(currentTarget.files ?? [])].map((file) => ({ name: file.webkitRelativePath, file })))
          currentTarget.value = ''
        }}
      />
    </>
  )
}

function ViewMenu({ serverId, directory }: Props) {
  const { t } = useLingui()
  const [, navigate] = useLocation()
  return (
    <>
      <Tool icon="tiles" label={t`Disk usage`} onClick={() => navigate(`${hrefOf(serverId, directory)}?show=usage`)} />
      <Tool icon="trashOut" label={t`Trash`} onClick={() => navigate(`${hrefOf(serverId, '/')}?show=trash`)} />
    </>
  )
}

function UploadButton({ onUpload }: Pick<Props, 'onUpload'>) {
  const { t } = useLingui()
  const picker = useRef<HTMLInputElement>(null)
  return (
    <>
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
  )
}

interface ActionProps {
  icon: IconName
  label: string
  onClick: () => void
}

function Item({ icon, label, onClick }: ActionProps) {
  return (
    <Menu.Item leftSection={<Icon name={icon} size={16} />} onClick={onClick}>
      {label}
    </Menu.Item>
  )
}

function Tool({ icon, label, onClick }: ActionProps) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="default" size={36} aria-label={label} onClick={onClick}>
        <Icon name={icon} size={16} />
      </ActionIcon>
    </Tooltip>
  )
}
