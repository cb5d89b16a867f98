import type { Agent } from '../../contract/agent.ts'
import { readDisks } from '../../contract/disks.ts'
import { requireAllServers } from './actor.ts'
import { type Api, serve } from './route.ts'

export function diskRoutes(api: Api, { disks }: Pick<Agent, 'disks'>): void {
  serve(api, readDisks, async ({ actor }) => {
    requireAllServers(actor)
    return { data: await disks.measure() }
  })
}
