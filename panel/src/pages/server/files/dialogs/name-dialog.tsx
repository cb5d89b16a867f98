import { useLingui } from '@lingui/react/macro'
import { TextInput } from '@mantine/core'
import { useState } from 'react'
import { FormDialog } from './form-dialog.tsx'

interface Props {
  title: string
  action: string
  error: Error | null
  isPending: boolean
  onSubmit: (name: string) => void
  onClose: () => void
}

/** Asks for the name of a file or folder. Mounted for as long as it is open. */
export function NameDialog({ onSubmit, ...dialog }: Props) {
  const { t } = useLingui()
  const [name, setName] = useState('')
  const isGood = name.trim() !== '' && !name.includes('/')
  return (
    <FormDialog {...dialog} isGood={isGood} onSubmit={() => onSubmit(name)}>
      <TextInput
        label={t`Name`}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={name.includes('/') ? t`A name has no slash` : undefined}
        data-autofocus
      />
    </FormDialog>
  )
}
