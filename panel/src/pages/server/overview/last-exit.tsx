import { Trans } from '@lingui/react/macro'
import type { Server } from '../../../../../src/sdk/index.ts'
import { Icon } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import css from './overview-tab.module.css'

/** Why the game is down, in words, with what to do. An end that was asked for needs none. */
export function LastExit({ server: { power, limits } }: { server: Server }) {
  const { exit, state } = power
  const isDown = state === 'stopped' || state === 'crashed'
  if (!isDown || exit === null || exit.reason === 'requested') return null
  if (exit.reason === 'in_game') {
    return (
      <p className="soft">
        <Trans>It was stopped from inside the game.</Trans> <Moment at={exit.at} />
      </p>
    )
  }
  return (
    <div className={css.exit} role="status">
      <Icon name="warning" size={20} />
      <div>
        <p>
          <strong>
            {exit.reason === 'out_of_memory' && <Trans>The game ran out of memory.</Trans>}
            {exit.reason === 'killed' && <Trans>The game was killed.</Trans>}
            {exit.reason === 'crashed' && <Trans>The game has crashed.</Trans>}
          </strong>{' '}
          <Moment at={exit.at} />
        </p>
        <p className="soft">
          {exit.reason === 'out_of_memory' && limits.memoryBytes !== null && (
            <Trans>Give it more memory, or let it load less: fewer mods, a smaller view distance.</Trans>
          )}
          {exit.reason === 'out_of_memory' && limits.memoryBytes === null && (
            <Trans>
              The machine has too little memory for what runs on it. Stop another game, or give this one a limit.
            </Trans>
          )}
          {exit.reason === 'killed' && (
            <Trans>What it had not saved is lost. If the world is damaged, restore a backup.</Trans>
          )}
          {exit.reason === 'crashed' && <CrashAdvice code={exit.code} signal={exit.signal} />}
        </p>
      </div>
    </div>
  )
}

function CrashAdvice({ code, signal }: { code: number | null; signal: string | null }) {
  if (signal !== null) return <Trans>It ended with {signal}. Its last lines in the console say more.</Trans>
  return <Trans>It ended with exit code {code}. Its last lines in the console usually say why.</Trans>
}
