import { Trans } from '@lingui/react/macro'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import css from '../files-tab.module.css'
import { bringsFiles, type DroppedFile, readDrop } from './dropped.ts'

interface Props {
  /** Where it goes to. Null: nothing may be uploaded. */
  directory: string | null
  onDrop: (files: DroppedFile[]) => void
  children: ReactNode
}

/** The whole window: whoever drops something does not have to aim. */
export function DropZone({ directory, onDrop, children }: Props) {
  const isOver = useWindowDrop(directory !== null, onDrop)
  return (
    <div className={`stack ${css.files}`} data-over={isOver || undefined}>
      {children}
      {isOver && (
        <p className={css.dropHint} role="status">
          <Trans>Drop it to upload it into {directory}</Trans>
        </p>
      )}
    </div>
  )
}

/** Whether files are being held over the window. At the document, and so before app/missed-drops.ts. */
function useWindowDrop(isOpen: boolean, onDrop: (files: DroppedFile[]) => void): boolean {
  const [isOver, setOver] = useState(false)
  const dropped = useRef(onDrop)
  dropped.current = onDrop
  useEffect(() => {
    if (!isOpen) return
    const left = new AbortController()
    const { signal } = left
    const over = (event: DragEvent) => {
      if (!bringsFiles(event.dataTransfer)) return
      event.preventDefault()
      setOver(true)
    }
    const leave = (event: DragEvent) => {
      // From one element to the next it is still within the window.
      if (event.relatedTarget === null) setOver(false)
    }
    const drop = (event: DragEvent) => {
      setOver(false)
      if (!bringsFiles(event.dataTransfer)) return
      event.preventDefault()
      void readDrop(event.dataTransfer).then((files) => dropped.current(files))
    }
    document.addEventListener('dragover', over, { signal })
    document.addEventListener('dragleave', leave, { signal })
    document.addEventListener('drop', drop, { signal })
    return () => left.abort()
  }, [isOpen])
  return isOver
}
