// What has just happened, for a few seconds, with a way back where there is one.
import { useLingui } from '@lingui/react/macro'
import { Button, CloseButton } from '@mantine/core'
import { useSyncExternalStore } from 'react'
import { ProblemText } from './problem.tsx'
import css from './toasts.module.css'

interface Toast {
  id: number
  text: string
  error?: unknown
  action?: { label: string; run: () => void }
}

const SHOWN_MS = 8000
const AT_MOST = 4
let toasts: readonly Toast[] = []
let lastId = 0
const listeners = new Set<() => void>()

function set(next: readonly Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}

const dismiss = (id: number) => set(toasts.filter((toast) => toast.id !== id))

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function showToast(text: string, action?: Toast['action']): void {
  const id = ++lastId
  set([...toasts, { id, text, ...(action ? { action } : {}) }].slice(-AT_MOST))
  setTimeout(() => dismiss(id), SHOWN_MS)
}

/** Stays until it is dismissed: it may have a request id that somebody needs. */
export function showFailure(text: string, error: unknown): void {
  set([...toasts, { id: ++lastId, text, error }].slice(-AT_MOST))
}

export function Toasts() {
  const { t } = useLingui()
  const shown = useSyncExternalStore(subscribe, () => toasts)
  return (
    <section className={css.toasts} aria-live="polite" aria-label={t`Messages`}>
      {shown.map(({ id, text, action, error }) => (
        <div key={id} className={css.toast} data-failure={error !== undefined || undefined}>
          <div className="grow">
            <p className={css.text}>{text}</p>
            {error !== undefined && <ProblemText error={error} />}
          </div>
          {action && (
            <Button
              size="compact-sm"
              variant="light"
              onClick={() => {
                dismiss(id)
                action.run()
              }}
            >
              {action.label}
            </Button>
          )}
          <CloseButton size="sm" aria-label={t`Dismiss`} onClick={() => dismiss(id)} />
        </div>
      ))}
    </section>
  )
}
