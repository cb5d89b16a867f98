import { Job, jobExample } from '../jobs.ts'
import { operation } from '../operation.ts'
import { BOUNDS } from '../operation-bounds.ts'
import { Closed, ServerParams, type Static, Type } from '../schema.ts'

export const InstallRequest = Closed({
  wipe: Type.Optional(
    Type.Boolean({ description: 'Whether everything that is there goes to the trash first. false by default' }),
  ),
  start: Type.Optional(
    Type.Boolean({
      description:
        'Whether the game is started once it is installed, by a job `start` that waits until then. Needs power:write. false by default',
    }),
  ),
})
export type InstallRequest = Static<typeof InstallRequest>

export const installServer = operation({
  id: 'installServer',
  method: 'POST',
  path: '/servers/{serverId}/install',
  tag: 'Power and console',
  summary: 'Install the game of a server, or install it again',
  description:
    'Goes through the install steps of the template: `progress` of the job counts them as files, and the console has what they ' +
    'say. Files that are there stay, unless a step writes over them or `wipe` is true. The game does not start meanwhile. With `start` it is started afterwards, unless somebody ' +
    'stops it before, or the installation fails.',
  scope: 'servers:write',
  bound: BOUNDS.job,
  params: ServerParams,
  body: InstallRequest,
  bodyExample: { wipe: false, start: true },
  answers: {
    202: { description: 'The job that installs it', schema: Job, example: { ...jobExample, kind: 'install' } },
  },
  errors: [
    'too_large',
    'unsupported_media_type',
    'idempotency_conflict',
    'server_running',
    'server_busy',
    'install_failed',
    'restore_unfinished',
  ],
})
