import { useLingui } from '@lingui/react/macro'
import { Checkbox } from '@mantine/core'
import { useState } from 'react'
import type { FileEntry } from '../../../../../../src/sdk/index.ts'
import { useFileActions } from '../../../../api/files.ts'
import css from './dialogs.module.css'
import type { Place } from './dialogs.tsx'
import { FormDialog } from './form-dialog.tsx'

/** The nine permission bits, from that of the owner to read downwards. */
const BITS = [0o400, 0o200, 0o100, 0o040, 0o020, 0o010, 0o004, 0o002, 0o001]

export function ModeDialog({ serverId, directory, onClose, entries }: Place & { entries: readonly FileEntry[] }) {
  const { t } = useLingui()
  const { setMode } = useFileActions(serverId)
  const [mode, changeMode] = useState(() => Number.parseInt(entries[0]?.mode ?? '0644', 8) & 0o777)
  const names = entries.map(({ name }) => name)
  const rights = [t`Read`, t`Write`, t`Execute`]
  const people = [t`Owner`, t`Group`, t`Others`]
  const text = mode.toString(8).padStart(3, '0')
  return (
    <FormDialog
      title={names.length === 1 ? t`Mode of ${names[0]}` : t`Mode of ${names.length} items`}
      action={t`Change to ${text}`}
      error={setMode.error}
      isPending={setMode.isPending}
      isGood
      onSubmit={() => setMode.mutate({ directory, names, mode: text }, { onSuccess: onClose })}
      onClose={onClose}
    >
      <div className={css.fields}>
        {people.map((person, group) => (
          <fieldset key={person} className={css.rights}>
            <legend>{person}</legend>
            {rights.map((right, index) => {
              const bit = BITS[group * 3 + index] ?? 0
              return (
                <Checkbox
                  key={right}
                  label={right}
                  checked={(mode & bit) !== 0}
                  onChange={(event) => changeMode(event.currentTarget.checked ? mode | bit : mode & ~bit)}
                />
              )
            })}
          </fieldset>
        ))}
      </div>
    </FormDialog>
  )
}
