// How the game of a server is started, where no template says it: the file `start` at the top of its files, whatever it is.
import type { Launch } from '../../contract/launch.ts'
import type { ServerRow } from '../db/tables.ts'

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

export function launchOf(row: Pick<ServerRow, 'port'>): Launch {
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
    image: null,
  }
}
