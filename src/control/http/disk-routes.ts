import type { Agent } from '../../contract/agent.ts'
import { readDisks } from '../../contract/disks.ts'
import { requireAllServers } from './actor.ts'
import { type Cursors, pageOfWhole } from './paging.ts'
import { type Api, serve } from './route.ts'

export function diskRoutes(api: Api, { disks }: Pick<Agent, 'disks'>, cursors: Cursors): void {
  serve(api, readDisks, async ({ actor, query }) => {
    requireAllServers(actor)
    return pageOfWhole(cursors, 'disks', query, await disks.measure(), ({ folders }) => folders.join())
  })
}
