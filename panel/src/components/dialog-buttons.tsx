import { Trans } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import type { ReactNode } from 'react'

/** The one that does it, and the one that does not. */
export function DialogButtons({ onClose, children }: { onClose: () => void; children: ReactNode }) {
  return (
    <div className="row">
      {children}
      <Button variant="default" onClick={onClose}>
        <Trans>Cancel</Trans>
      </Button>
    </div>
  )
}
