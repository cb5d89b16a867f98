import { Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import { ApiError, TransportError } from '../../../src/sdk/index.ts'
import { adviceFor } from '../i18n/advice.ts'
import { CopyButton } from './copy-button.tsx'
import { Icon } from './icon.tsx'
import css from './problem.module.css'

/** What went wrong and what to do about it, with the request id for whoever reads the log. */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  return (
    <div role="alert" className={css.problem}>
      <Icon name="warning" size={20} />
      <div className="grow">
        <ProblemText error={error} />
      </div>
      {onRetry && (
        <Button variant="default" size="xs" onClick={onRetry}>
          <Trans>Try again</Trans>
        </Button>
      )}
    </div>
  )
}

export function ProblemText({ error }: { error: unknown }) {
  const { t } = useLingui()
  if (error instanceof TransportError) {
    return <p>{t`The service cannot be reached. The panel keeps trying.`}</p>
  }
  if (!(error instanceof ApiError)) return <p>{error instanceof Error ? error.message : String(error)}</p>
  const advice = adviceFor(error)
  return (
    <>
      <p>{error.detail}</p>
      {advice && <p className="small">{t(advice)}</p>}
      {error.errors.map(({ path, message }) => (
        <p key={path} className="small">
          <span className="mono">{path}</span> {message}
        </p>
      ))}
      {error.requestId && (
        <p className={`small faint ${css.request}`}>
          <span className="cut">
            <Trans>Request</Trans> <span className="mono">{error.requestId}</span>
          </span>
          <CopyButton text={error.requestId} label={t`Copy the request id`} />
        </p>
      )}
    </>
  )
}
