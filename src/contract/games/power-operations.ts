import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import { Closed, OneOf, ServerParams } from '../schema.ts'
import { Server, serverExample } from '../servers.ts'
import { POWER_ACTIONS } from './power.ts'

const started = {
  ...serverExample,
  power: { state: 'starting', since: '2026-11-15T00:00:00.000Z', step: null, exit: null },
  runtime: {
    kind: 'process',
    isolation: 'bubblewrap',
    user: 1_900_000_000,
    enforced: { memory: 'cgroup', cpu: 'cgroup', processes: 'cgroup' },
  },
}

export const powerServer = operation({
  id: 'powerServer',
  method: 'POST',
  path: '/servers/{serverId}/power',
  tag: 'Power and console',
  summary: 'Start, stop, restart or kill the game of a server',
  description:
    'Answers once it has begun; `power` of the server shows how it goes on. What can be known before a start is checked ' +
    'first. `stop` goes through the steps of the template and ends with SIGKILL; `kill` is SIGKILL at once, whatever else is ' +
    'under way.',
  scope: 'power:write',
  bound: BOUNDS.rows,
  params: ServerParams,
  body: Closed({ action: OneOf(POWER_ACTIONS) }),
  bodyExample: { action: 'start' },
  answers: {
    202: { description: 'The server; it has begun', schema: Server, example: started },
    200: { description: 'The server; it is so already', schema: Server, example: started },
  },
  errors: [
    'too_large',
    'unsupported_media_type',
    'idempotency_conflict',
    'server_busy',
    'not_startable',
    'port_taken',
    'quota_exceeded',
    'isolation_missing',
    'agent_unreachable',
  ],
})
