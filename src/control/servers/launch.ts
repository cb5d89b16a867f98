// How the game of a server is started: as its template says, and without one by the file `start` at the top of its files,
// whatever that is.
import type { GameLimits } from '../../contract/agent/agent-games.ts'
import type { Launch } from '../../contract/games/launch.ts'
import type { RuntimeChoice } from '../../contract/games/runtime-choice.ts'
import type { Template } from '../../contract/games/template-format.ts'
import { CONTAINER_DIRECTORY, resolveLaunch, type ServerFacts } from '../../templates/resolve.ts'
import type { ServerRow } from '../db/tables.ts'
import { choiceOf } from './runtime-choice.ts'
import { variablesOf } from './variables.ts'

const STOP_SECONDS = 30
const SIGNAL_SECONDS = 10

/** The protocol is not known, so both are to be free. */
const portsOf = ({ port }: Pick<ServerRow, 'port'>): Launch['ports'] =>
  port === null
    ? []
    : [
        { name: 'game', port, protocol: 'tcp' },
        { name: 'game', port, protocol: 'udp' },
      ]

/** Throws `invalid_request` where the template lacks a value. */
export function launchOf(row: ServerRow, template: Template | undefined): Launch {
  return template ? resolveLaunch(template, variablesOf(row), serverFactsOf(row)) : launchOfStart(row, choiceOf(row))
}

/** What a template can fill in of the server. */
export function serverFactsOf(row: ServerRow): ServerFacts {
  const { id, name, port, limit_memory_bytes: memoryBytes } = row
  return { id, name, port, memoryBytes, runtime: choiceOf(row) }
}

export const gameLimitsOf = (row: ServerRow): GameLimits => ({
  memoryBytes: row.limit_memory_bytes,
  cpuPercent: row.limit_cpu_percent,
  processes: row.limit_processes,
})

function launchOfStart(row: Pick<ServerRow, 'port'>, runtime: RuntimeChoice | null): Launch {
  const image = runtime?.kind === 'container' ? runtime.image : null
  return {
    templateId: 'generic',
    argv: ['./start'],
    shellLine: null,
    environment: row.port === null ? {} : { PORT: String(row.port) },
    workingDirectory: '/',
    ready: [],
    stop: [
      { command: 'stop', timeoutSeconds: STOP_SECONDS, message: 'waiting for the game to save and stop' },
      { signal: 'SIGINT', timeoutSeconds: SIGNAL_SECONDS, message: null },
      { signal: 'SIGTERM', timeoutSeconds: SIGNAL_SECONDS, message: null },
    ],
    stopsByItself: [],
    joins: [],
    leaves: [],
    ports: portsOf(row),
    query: null,
    quiesce: null,
    container: image === null ? null : { image, directory: CONTAINER_DIRECTORY, capabilities: [], installer: null },
    configFiles: [],
    requires: [],
  }
}
