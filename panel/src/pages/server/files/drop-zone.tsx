import { type ReactNode, useState } from 'react'
import { type DroppedFile, readDrop } from './dropped.ts'
import css from './files-tab.module.css'

interface Props {
  isOpen: boolean
  onDrop: (files: DroppedFile[]) => void
  children: ReactNode
}

export function DropZone({ isOpen, onDrop, children }: Props) {
  const [isOver, setOver] = useState(false)
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping has the button "Upload" beside it
    <div
      className={`stack ${css.files}`}
      data-over={isOver || undefined}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(isOpen)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        if (isOpen) void readDrop(event.dataTransfer).then(onDrop)
      }}
    >
      {children}
    </div>
  )
}
