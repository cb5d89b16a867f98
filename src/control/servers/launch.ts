// How the game of a server is started: as its template says, and without one by the file `start` at the top of its files,
// whatever that is.
import type { Launch } from '../../contract/games/launch.ts'
import type { Template } from '../../contract/games/template-format.ts'
import { resolveLaunch } from '../../templates/resolve.ts'
import type { ServerRow } from '../db/tables.ts'
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
  const { id, name, port, limit_memory_bytes: memoryBytes } = row
  return template ? resolveLaunch(template, variablesOf(row), { id, name, port, memoryBytes }) : launchOfStart(row)
}

function launchOfStart(row: Pick<ServerRow, 'port'>): Launch {
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
    container: null,
    configFiles: [],
    requires: [],
  }
}
