import { Button } from '@mantine/core'
import type { ReactNode } from 'react'
import { Dialog } from '../../../../components/dialog.tsx'
import { DialogButtons } from '../../../../components/dialog-buttons.tsx'
import { Problem } from '../../../../components/problem.tsx'

interface Props {
  title: string
  action: string
  error: Error | null
  isPending: boolean
  isGood: boolean
  onSubmit: () => void
  onClose: () => void
  size?: string
  children: ReactNode
}

/** Fields, what went wrong, and the two buttons. */
export function FormDialog({ title, action, error, isPending, isGood, onSubmit, onClose, size, children }: Props) {
  return (
    <Dialog opened onClose={onClose} title={title} {...(size ? { size } : {})}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          if (isGood) onSubmit()
        }}
      >
        {children}
        {error && <Problem error={error} />}
        <DialogButtons onClose={onClose}>
          <Button type="submit" loading={isPending} disabled={!isGood}>
            {action}
          </Button>
        </DialogButtons>
      </form>
    </Dialog>
  )
}
