import { useLingui } from '@lingui/react/macro'
import { type SyntheticEvent, useEffect, useRef, useState } from 'react'
import css from './file-table.module.css'

interface Props {
  name: string
  /** With the new name; null where it stays as it is. `hasLeft`: the focus is somewhere else by then. */
  onEnd: (to: string | null, hasLeft: boolean) => void
}

/** In the place of the name: Enter or going elsewhere takes it. Escape is up to the table, which sees keys first. */
export function RenameField({ name, onEnd }: Props) {
  const { t } = useLingui()
  const field = useRef<HTMLInputElement>(null)
  const [typed, setTyped] = useState(name)
  const hasSlash = typed.includes('/')
  /** It leaves the page while it has the focus, which may be told as going elsewhere. */
  const isEnded = useRef(false)
  const end = (to: string | null, hasLeft: boolean) => {
    if (isEnded.current) return
    isEnded.current = true
    onEnd(to === name ? null : to, hasLeft)
  }
  // What most people change is the part before the ending.
  useEffect(() => {
    const dot = name.lastIndexOf('.')
    field.current?.focus()
    field.current?.setSelectionRange(0, dot > 0 ? dot : name.length)
  }, [name])
  /** A click into the text is not one on the row. */
  const stay = (event: SyntheticEvent) => event.stopPropagation()
  return (
    <form
      className="grow"
      onSubmit={(event) => {
        event.preventDefault()
        if (typed.trim() !== '' && !hasSlash) end(typed, false)
      }}
    >
      <input
        ref={field}
        className={css.rename}
        aria-label={t`New name of ${name}`}
        aria-invalid={hasSlash || undefined}
        title={hasSlash ? t`A name has no slash` : undefined}
        autoComplete="off"
        spellCheck={false}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        onBlur={() => end(typed.trim() === '' || hasSlash ? null : typed, true)}
        onPointerDown={stay}
        onMouseDown={stay}
        onClick={stay}
        onDoubleClick={stay}
      />
    </form>
  )
}
