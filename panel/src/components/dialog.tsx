import { useLingui } from '@lingui/react/macro'
import { Modal, type ModalProps } from '@mantine/core'

/** A dialog, whose button to close it has a name. */
export function Dialog(props: ModalProps) {
  const { t } = useLingui()
  return <Modal closeButtonProps={{ 'aria-label': t`Close` }} {...props} />
}
