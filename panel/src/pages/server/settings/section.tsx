import { Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import type { ReactNode } from 'react'
import { ApiError, type Server, type ServerChange } from '../../../../../src/sdk/index.ts'
import { useChangeServer } from '../../../api/server-settings.ts'
import { Problem } from '../../../components/problem.tsx'
import { showToast } from '../../../components/toasts.tsx'
import css from './settings-tab.module.css'

/** What belongs together, under a heading. */
export function Section({ title, text, children }: { title: string; text?: ReactNode; children: ReactNode }) {
  return (
    <section className={`card ${css.section}`}>
      <div className={css.about}>
        <h2>{title}</h2>
        {text && <p className="small soft">{text}</p>}
      </div>
      <div className={css.fields}>{children}</div>
    </section>
  )
}

/** For what needs the game stopped: a button, and the reason beside it while it cannot be pressed. */
export function WhenStopped({ server, children }: { server: Server; children: (isStopped: boolean) => ReactNode }) {
  const isStopped = ['stopped', 'crashed', 'sleeping'].includes(server.power.state)
  return (
    <div className="row">
      {children(isStopped)}
      {!isStopped && (
        <span className="small soft">
          <Trans>Stop the game first.</Trans>
        </span>
      )}
    </div>
  )
}

interface SectionFormProps {
  title: string
  text?: ReactNode
  serverId: string
  mayChange: boolean
  /** What would be saved. Null: nothing differs from what is stored. */
  change: ServerChange | null
  /** Back to what is stored. */
  onReset: () => void
  /** The fault that the service found in a field, by its path, such as `/name`. */
  children: (faultAt: (path: string) => string | null) => ReactNode
}

/** A section that is saved as one. */
export function SectionForm({ title, text, serverId, mayChange, change, onReset, children }: SectionFormProps) {
  const { t } = useLingui()
  const save = useChangeServer(serverId)
  const faults = save.error instanceof ApiError ? save.error.errors : []
  const faultAt = (path: string) => faults.find((fault) => fault.path === path)?.message ?? null
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    if (!change) return
    save.mutate(change, {
      onSuccess: () => {
        onReset()
        showToast(t`${title}: saved.`)
      },
    })
  }
  const reset = () => {
    save.reset()
    onReset()
  }
  return (
    <Section title={title} text={text}>
      <form onSubmit={submit}>
        <fieldset className={css.fieldset} disabled={!mayChange}>
          {children(faultAt)}
          {save.error && <Problem error={save.error} />}
          {mayChange && (
            <div className="row">
              <Button type="submit" loading={save.isPending} disabled={change === null}>
                <Trans>Save</Trans>
              </Button>
              {change !== null && (
                <Button variant="default" onClick={reset}>
                  <Trans>Discard</Trans>
                </Button>
              )}
            </div>
          )}
        </fieldset>
      </form>
    </Section>
  )
}
