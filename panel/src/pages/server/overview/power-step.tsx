// What is waited for while a game starts, stops or comes back, and how far down the stop ladder it is.
import { Trans, useLingui } from '@lingui/react/macro'
import { Progress } from '@mantine/core'
import { useEffect, useState } from 'react'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useTemplate } from '../../../api/servers.ts'
import css from './overview-tab.module.css'
import { currentRung, type Rung, rungsOf } from './stop-rungs.ts'

export function PowerStep({ server }: { server: Server }) {
  const { power, game } = server
  const isStopping = power.state === 'stopping'
  const { data: template } = useTemplate(isStopping ? game : null)
  const now = useNow(power.step !== null)
  if (power.step === null) return null
  const rungs = isStopping && template ? rungsOf(template.stop) : []
  return (
    <div className={css.step} role="status">
      <p>
        <StepText step={power.step} now={now} />
      </p>
      {rungs.length > 0 && <Ladder rungs={rungs} step={power.step} since={power.since} now={now} />}
    </div>
  )
}

interface LadderProps {
  rungs: readonly Rung[]
  step: string
  since: string | null
  now: number
}

function Ladder({ rungs, step, since, now }: LadderProps) {
  const { t } = useLingui()
  const at = currentRung(rungs, step)
  const seconds = rungs[at]?.seconds ?? 0
  const before = rungs.slice(0, at).reduce((sum, rung) => sum + rung.seconds, 0)
  const waited = since === null ? 0 : Math.max(0, (now - Date.parse(since)) / 1000 - before)
  const left = Math.max(0, Math.ceil(seconds - waited))
  return (
    <>
      <ol className={css.ladder} aria-label={t`Steps to stop the game`}>
        {rungs.map(({ key, action }, index) => (
          <li key={key} aria-current={index === at ? 'step' : undefined} data-past={index < at || undefined}>
            {action}
          </li>
        ))}
        <li aria-current={at === rungs.length ? 'step' : undefined}>SIGKILL</li>
      </ol>
      {seconds > 0 && (
        <div className={css.wait}>
          <Progress
            className="grow"
            size="sm"
            color="yellow.8"
            value={Math.min(100, (100 * waited) / seconds)}
            aria-label={t`Time until the next step`}
          />
          <span className="small">
            <Trans>next step in {left} s</Trans>
          </span>
        </div>
      )}
    </>
  )
}

/** As the service says it, in the reader's language where the form is known. */
function StepText({ step, now }: { step: string; now: number }) {
  const [, command] = /^waiting for "(.*)" to end it$/.exec(step) ?? []
  if (command !== undefined) {
    return (
      <Trans>
        Waiting for the command <code>{command}</code> to end the game.
      </Trans>
    )
  }
  const [, signal] = /^waiting for (SIG[A-Z]+) to end it$/.exec(step) ?? []
  if (signal !== undefined) return <Trans>Waiting for {signal} to end the game.</Trans>
  if (step === 'waiting for the game to save and stop') return <Trans>Waiting for the game to save and stop.</Trans>
  if (step === 'it did not stop in time, and is killed') return <Trans>It did not stop in time, and is killed.</Trans>
  const [, image] = /^pulling (.+)$/.exec(step) ?? []
  if (image !== undefined) {
    return (
      <Trans>
        Fetching the image <span className="mono">{image}</span>.
      </Trans>
    )
  }
  const [, restartAt] = /^starting again at (\S+)$/.exec(step) ?? []
  if (restartAt !== undefined) {
    const seconds = Math.max(0, Math.ceil((Date.parse(restartAt) - now) / 1000))
    return <Trans>It is started again in {seconds} s.</Trans>
  }
  return step
}

function useNow(isTicking: boolean): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!isTicking) return
    setNow(Date.now())
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [isTicking])
  return now
}
