// Everything that the API offers at random: clients on their plots, and a director who does what concerns whole servers.
import {
  change,
  deleteBackup,
  makeBackup,
  restore,
  setLock,
  startBackup,
  startDeletion,
  statusEnd,
  undelete,
} from '../actions.ts'
import { startAgain } from '../checker/index.ts'
import { watchQuotas } from '../checker/quotas.ts'
import { checkJobs, listAll } from '../checker/work.ts'
import { createGate, type Gate, workOn } from '../clients.ts'
import { ZONE } from '../keeper.ts'
import type { ServerModel } from '../model.ts'
import type { Random } from '../random.ts'
import type { Round } from '../round.ts'
import type { Rule } from '../switches.ts'
import type { Theme } from './theme.ts'

interface Directing {
  round: Round
  server: ServerModel
  gate: Gate
  random: Random
}
type Order = (directing: Directing) => Promise<unknown>

let nextPort = 1

const ORDERS: Record<string, Order> = {
  // A new port each time: a change that changes nothing has no entry.
  change: ({ round, server }) =>
    change(round, 'server.changed', 'PATCH', `/servers/${server.id}`, { port: (nextPort++ % 60_000) + 1 }),
  backup: ({ round, server, gate }) => gate.alone(() => makeBackup(round, server)),
  backupAmidWrites: ({ round, server }) => startBackup(round, server),
  async lock({ round, server, random }) {
    const backups = [...server.backups.values()].filter(({ deletion }) => deletion === 'none')
    if (backups.length > 0) await setLock(round, server, random.pick(backups), random.chance(0.5))
  },
  async deleteBackup({ round, server, random }) {
    const backups = [...server.backups.values()].filter(({ deletion }) => deletion === 'none')
    if (backups.length > 1) await deleteBackup(round, server, random.pick(backups))
  },
  async restore({ round, server, gate, random }) {
    const backups = [...server.backups.values()].filter(({ deletion, trees }) => deletion === 'none' && trees)
    if (backups.length === 0) return
    const mode = random.pick(['replace', 'merge'] as const)
    await gate.alone(() => restore(round, server, random.pick(backups), { mode, safetyBackup: false }))
  },
  emptyTrash: ({ round, server, gate }) =>
    gate.alone(async () => {
      const outcome = await change(round, 'file.trash_emptied', 'DELETE', `/files/${server.id}/trash`)
      if (outcome.kind !== 'refused') for (const plot of server.plots) plot.state = { ...plot.state, trash: [] }
    }),
  // Others wait, and so do jobs: what a deletion ends is not looked at here.
  deleteAndUndelete: ({ round, server, gate }) =>
    gate.alone(async () => {
      await checkJobs(round)
      const { kind } = await startDeletion(round, server)
      if (kind !== 'ok') return
      await statusEnd(round, server)
      await undelete(round, server)
    }),
  async subdomain({ round, server, random }) {
    const name = `castle${random.int(4)}`
    const known = round.subdomains.known.get(name)
    const path = `/subdomains/${server.id}/subdomains`
    if (known?.isThere === true && known.serverId === server.id) {
      const outcome = await round.history.send({ method: 'DELETE', target: `${path}/${known.id}` })
      if (outcome.kind !== 'refused') known.isThere = outcome.kind === 'ok' ? false : 'unknown'
      return
    }
    const outcome = await round.history.send({ method: 'POST', target: path, json: { name, zone: ZONE } })
    if (outcome.kind === 'refused') return
    const id = outcome.kind === 'ok' ? String(outcome.body.id) : null
    round.subdomains.known.set(name, { serverId: server.id, id, isThere: outcome.kind === 'ok' ? true : 'unknown' })
  },
  async token({ round }) {
    const body = { name: 'x', scopes: ['servers:read'], servers: '*' }
    const made = await change(round, 'token.created', 'POST', '/tokens', body)
    if (made.kind === 'ok') await change(round, 'token.revoked', 'DELETE', `/tokens/${made.body.id}`)
  },
  async pack({ round, server, random }) {
    const path = `/packed ${random.int(1000)}.tar`
    const body = { files: [random.pick(server.plots).path.slice(1)], target: path }
    await change(round, 'job.started', 'POST', `/files/${server.id}/pack`, body)
  },
  async read({ round, server }) {
    for (const path of ['/files', '/backups']) await listAll(round, `${path}/${server.id}`)
    await round.history.send({ method: 'GET', target: `/servers/${server.id}/activity?limit=5` })
    await round.history.send({ method: 'GET', target: `/files/${server.id}/search?q=f` })
  },
}

async function direct(directing: Directing, steps: number, only: readonly string[]): Promise<void> {
  const { round, random } = directing
  const names = Object.keys(ORDERS).filter((name) => only.length === 0 || only.includes(name))
  for (let step = 0; step < steps && !round.keeper.isDown(); step++) {
    try {
      await ORDERS[random.pick(names)]?.(directing)
    } catch (error) {
      // Whoever waited for an end when the service went down has nothing to say.
      if (!round.keeper.isDown()) throw error
    }
  }
}

/** Clients and a director at once, on two servers. */
async function doEverything(
  round: Round,
  servers: readonly ServerModel[],
  steps: number,
  only: readonly string[] = [],
) {
  await Promise.all(
    servers.map(async (server) => {
      const gate = createGate()
      const random = round.random.fork(`director ${server.name} ${round.keeper.starts}`)
      const working = workOn(round, server.plots, { steps, gate })
      await Promise.all([working, direct({ round, server, gate, random }, Math.ceil(steps / 2), only)])
    }),
  )
}

export const everything: Theme = {
  about: 'everything at random, on two servers, and nothing stands in its way',
  aimedAt: [],
  async run(round) {
    const servers = [await round.newServer({ diskBytes: 20_000_000 }, 2), await round.newServer(undefined, 2)]
    await using _watched = watchQuotas(round)
    await doEverything(round, servers, 16)
  },
}

/** What a kill leaves open: whoever restores then has no exact picture. */
const SURE = ['change', 'backupAmidWrites', 'lock', 'subdomain', 'token', 'read', 'pack']

export const everythingKilled: Theme = {
  about: 'everything at random while the service is killed, also in the middle of a call or a statement',
  aimedAt: ['6', '7'],
  async run(round) {
    const { keeper, random } = round
    const servers = [await round.newServer(undefined, 3)]
    for (let turn = 0; turn < 2; turn++) {
      const rule = { match: random.pick(['agent/', 'blobs/', 'control/', 'dns/']), skip: random.int(200), times: 1 }
      await keeper.set({ files: [{ ...rule, fault: { kill: random.pick(['before', 'after'] as const) } }] })
      await doEverything(round, servers, 12, SURE)
      await keeper.kill()
      await keeper.set({ files: [] })
      await startAgain(round)
    }
  },
}

export const injectedErrors: Theme = {
  about: 'calls to the file system fail here and there; what is answered has happened, and what has is recorded',
  aimedAt: ['16', '7'],
  async run(round) {
    const { keeper, random } = round
    round.excuses = { internalErrors: true, failedWork: true, failingDisk: true }
    const servers = [await round.newServer(undefined, 3)]
    const rules = Array.from({ length: 6 }, (): Rule => {
      const errno = random.pick(['EIO', 'ENOSPC', 'EROFS', 'EMFILE', 'EACCES', 'EPERM'])
      return {
        match: random.pick(['agent/', 'agent/files', 'agent/journal', 'agent/backups']),
        skip: random.int(400),
        times: 1,
        fault: { errno },
      }
    })
    await keeper.set({ files: rules })
    await doEverything(round, servers, 14, SURE)
    round.history.note({ struck: (await keeper.seen()).struck })
  },
}

export const refusedStatements: Theme = {
  about: 'the database refuses statements here and there; what is refused has not happened, what is answered has',
  aimedAt: ['16', '7'],
  async run(round) {
    const { keeper, random } = round
    round.excuses = { internalErrors: true, failedWork: true }
    const servers = [await round.newServer(undefined, 3)]
    const rules = Array.from({ length: 5 }, (): Rule => {
      const match = random.pick(['insert into "activity', 'insert into', '^update', '^commit'])
      return { match, skip: random.int(60), times: 1, fault: { errno: 'ENOSPC' } }
    })
    await keeper.set({ statements: rules })
    await doEverything(round, servers, 14, SURE)
    round.history.note({ struck: (await keeper.seen()).struck })
  },
}
