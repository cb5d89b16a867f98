import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Modal, TextInput } from '@mantine/core'
import { useState } from 'react'
import { Problem } from '../../../components/problem.tsx'

interface Props {
  title: string
  action: string
  initial: string
  error: Error | null
  isPending: boolean
  onSubmit: (name: string) => void
  onClose: () => void
}

/** Asks for the name of a file or folder. Mounted for as long as it is open. */
export function NameDialog({ title, action, initial, error, isPending, onSubmit, onClose }: Props) {
  const { t } = useLingui()
  const [name, setName] = useState(initial)
  const isGood = name.trim() !== '' && name !== initial && !name.includes('/')
  return (
    <Modal opened onClose={onClose} title={title}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (isGood) onSubmit(name)
        }}
      >
        <TextInput
          label={t`Name`}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={name.includes('/') ? t`A name has no slash` : undefined}
          data-autofocus
        />
        {error && <Problem error={error} />}
        <div className="row">
          <Button type="submit" loading={isPending} disabled={!isGood}>
            {action}
          </Button>
          <Button variant="default" onClick={onClose}>
            <Trans>Cancel</Trans>
          </Button>
        </div>
      </form>
    </Modal>
  )
}
