import { Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import { Component, type ReactNode } from 'react'
import { CopyButton } from '../components/copy-button.tsx'
import { PartError } from '../components/lazy-part.ts'
import { ProblemText } from '../components/problem.tsx'
import css from './error-boundary.module.css'

interface Props {
  children: ReactNode
  /** Another value clears the error, such as the next page's path. */
  resetKey?: string
}

interface State {
  error: Error | null
  resetKey: string | undefined
}

/** A fault of one page leaves the navigation usable. */
export class ErrorBoundary extends Component<Props, State> {
  override state: State = { error: null, resetKey: this.props.resetKey }

  static getDerivedStateFromError(error: Error): Partial<State> {
    return { error }
  }

  static getDerivedStateFromProps(props: Props, state: State): Partial<State> | null {
    return props.resetKey === state.resetKey ? null : { error: null, resetKey: props.resetKey }
  }

  override render() {
    const { error } = this.state
    // A part that could not be loaded stays so in this page.
    const reset = () => (error instanceof PartError ? location.reload() : this.setState({ error: null }))
    return error ? <Broken error={error} onReset={reset} /> : this.props.children
  }
}

function Broken({ error, onReset }: { error: Error; onReset: () => void }) {
  const { t } = useLingui()
  return (
    <div className={css.broken} role="alert">
      <h1>
        <Trans>This page has a fault</Trans>
      </h1>
      <p className="soft">
        <Trans>Nothing of yours was touched. Try again; if it stays, report it with the text below.</Trans>
      </p>
      <div className={css.detail}>
        <ProblemText error={error} />
        <CopyButton text={`${error.name}: ${error.message}\n${error.stack ?? ''}`} label={t`Copy the report`} />
      </div>
      <div className="row">
        <Button onClick={onReset}>
          <Trans>Try again</Trans>
        </Button>
        <Button variant="default" onClick={() => location.assign('/')}>
          <Trans>To your servers</Trans>
        </Button>
      </div>
    </div>
  )
}
