import { Trans } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import type { ReactNode } from 'react'
import { SecretText } from './secret-text.tsx'

interface Props {
  secret: string
  copyLabel: string
  onClose: () => void
  /** What to do with it. */
  children: ReactNode
}

/** A secret that was just made, and that nobody sees again. */
export function ShownOnce({ secret, copyLabel, onClose, children }: Props) {
  return (
    <div className="stack">
      <SecretText text={secret} label={copyLabel} />
      <p className="soft">{children}</p>
      <div className="row">
        <Button onClick={onClose}>
          <Trans>Done</Trans>
        </Button>
      </div>
    </div>
  )
}
