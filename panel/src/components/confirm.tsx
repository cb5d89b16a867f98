import { Button } from '@mantine/core'
import type { ReactNode } from 'react'
import { Dialog } from './dialog.tsx'
import { DialogButtons } from './dialog-buttons.tsx'

interface Props {
  isOpen: boolean
  onClose: () => void
  onConfirm: () => void
  title: string
  /** What will happen, in plain words. */
  text: ReactNode
  action: string
  color?: string
}

export function Confirm({ isOpen, onClose, onConfirm, title, text, action, color = 'red' }: Props) {
  return (
    <Dialog opened={isOpen} onClose={onClose} title={title}>
      <div className="stack">
        <div className="soft">{text}</div>
        <DialogButtons onClose={onClose}>
          <Button
            color={color}
            data-autofocus
            onClick={() => {
              onClose()
              onConfirm()
            }}
          >
            {action}
          </Button>
        </DialogButtons>
      </div>
    </Dialog>
  )
}
