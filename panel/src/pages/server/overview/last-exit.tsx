import { Trans } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import { Link } from 'wouter'
import type { Server } from '../../../../../src/sdk/index.ts'
import { Icon } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import css from './overview-tab.module.css'

type Exit = NonNullable<Server['power']['exit']>

interface Props {
  server: Server
  /** Shows a line of the console; null: nobody may read it. */
  onJump: ((line: number) => void) | null
}

/** Why the game is down, in words, with what to do. An end that was asked for needs none. */
export function LastExit({ server, onJump }: Props) {
  const { exit, state } = server.power
  const isDown = state === 'stopped' || state === 'crashed'
  if (!isDown || exit === null || exit.reason === 'requested') return null
  const { lastLine } = exit
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
      <div className="stack">
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
            <Advice exit={exit} server={server} />
          </p>
        </div>
        <div className="row">
          {onJump && lastLine !== null && (
            <Button variant="default" size="xs" onClick={() => onJump(lastLine)}>
              <Trans>Show its last lines</Trans>
            </Button>
          )}
          {exit.reason === 'out_of_memory' && (
            <Link href={`/servers/${server.id}/settings`}>
              <Trans>To the limits</Trans>
            </Link>
          )}
          {exit.reason !== 'out_of_memory' && (
            <Link href={`/servers/${server.id}/backups`}>
              <Trans>To the backups</Trans>
            </Link>
          )}
        </div>
      </div>
    </div>
  )
}

function Advice({ exit, server: { limits } }: { exit: Exit; server: Server }) {
  if (exit.reason === 'out_of_memory') {
    return limits.memoryBytes === null ? (
      <Trans>The machine has too little memory for what runs on it. Stop another game, or give this one a limit.</Trans>
    ) : (
      <Trans>Give it more memory, or let it load less: fewer mods, a smaller view distance.</Trans>
    )
  }
  if (exit.reason === 'killed') {
    return <Trans>What it had not saved is lost. If the world is damaged, restore a backup.</Trans>
  }
  return <CrashAdvice code={exit.code} signal={exit.signal} />
}

function CrashAdvice({ code, signal }: { code: number | null; signal: string | null }) {
  if (signal === 'SIGSEGV' || signal === 'SIGABRT' || signal === 'SIGBUS' || signal === 'SIGILL') {
    return (
      <Trans>
        It ended with {signal}: a fault within the program. A mod or an update that came last is the usual cause; take
        it out, or restore a backup from before.
      </Trans>
    )
  }
  if (signal !== null) return <Trans>It ended with {signal}. Its last lines in the console say more.</Trans>
  if (code === 127) {
    return (
      <Trans>Exit code 127: a program that it needs is missing. Install the game again, or look at its start.</Trans>
    )
  }
  if (code === 126) {
    return <Trans>Exit code 126: its program may not be run. Give the file the mode 0755 under Files.</Trans>
  }
  if (code === 0) {
    return <Trans>It ended by itself, without an error. Its last lines in the console usually say why.</Trans>
  }
  return <Trans>It ended with exit code {code}. Its last lines in the console usually say why.</Trans>
}
