// Whole servers: locked while they are deleted, deleted twice, changed by many at once, packed while they go, held after.

import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { spawnService } from '../../../support/process.ts'
import { change, makeBackup, purge, setLock, startDeletion, statusEnd, undelete } from '../actions.ts'
import { readActivity } from '../checker/activity.ts'
import { filesFolder, labelsBelow } from '../checker/disk.ts'
import { workOn } from '../clients.ts'
import { expectOk } from '../history.ts'
import { failing, ZONE } from '../keeper.ts'
import { labelsOf, type ServerModel } from '../model.ts'
import type { Round } from '../round.ts'
import type { Rule } from '../switches.ts'
import type { Theme } from './theme.ts'

const MIB = 1024 * 1024

export const lockAgainstDelete: Theme = {
  about: 'a backup is locked while its server is deleted: one of the two is refused',
  aimedAt: ['4'],
  async run(round) {
    for (let turn = 0; turn < 6; turn++) {
      const server = await round.newServer()
      const backup = await makeBackup(round, server)
      const orders = [() => setLock(round, server, backup, true), () => startDeletion(round, server)]
      const [first, second] = await Promise.all((turn % 2 === 0 ? orders : orders.reverse()).map((send) => send()))
      if (first?.kind === 'ok' && second?.kind === 'ok')
        round.violation(`${backup.id} was locked and its server deleted, and both were answered with success`)
    }
  },
}

export const deletedTwice: Theme = {
  about: 'a server is deleted by two at once: it happens once',
  aimedAt: ['4'],
  async run(round) {
    for (let turn = 0; turn < 6; turn++) {
      const server = await round.newServer()
      const answers = await Promise.all([startDeletion(round, server), startDeletion(round, server)])
      const jobs = answers.flatMap((answer) => (answer.kind === 'ok' ? [String(answer.body.id)] : []))
      if (new Set(jobs).size > 1) round.violation(`two deletions of ${server.id} are under way: ${jobs.join(', ')}`)
    }
  },
}

export const quotaRace: Theme = {
  about: 'four clients change a quota at once: the one that is shown is the one that is enforced',
  aimedAt: ['4', '12'],
  async run(round) {
    const server = await round.newServer({ diskBytes: MIB })
    await round.keeper.set({ statements: [LATE_COMMITS] })
    for (let turn = 1; turn <= 10; turn++) {
      const quotas = [1, 2, 3, 4].map((factor) => factor * MIB + turn * 4096)
      await Promise.all(
        quotas.map((diskBytes) =>
          round.history.send({ method: 'PATCH', target: `/servers/${server.id}`, json: { limits: { diskBytes } } }),
        ),
      )
      await compareQuota(round, server.id)
    }
    round.history.note({ struck: (await round.keeper.seen()).struck.length })
    server.quotaBytes = 5 * MIB
  },
}

/** On PostgreSQL, where the answers of two connections may overtake each other anyway. */
const LATE_COMMITS: Rule = { match: '^commit', skip: 0, times: Number.MAX_SAFE_INTEGER, fault: { delayMs: 50 } }

async function compareQuota(round: Round, serverId: string): Promise<void> {
  const { body: server } = expectOk(await round.history.send({ method: 'GET', target: `/servers/${serverId}` }))
  const { body: usage } = expectOk(await round.history.send({ method: 'GET', target: `/files/${serverId}/usage` }))
  if (server.limits.diskBytes !== usage.quotaBytes)
    round.violation(`${serverId} shows a quota of ${server.limits.diskBytes} and ${usage.quotaBytes} is enforced`)
}

export const failedChange: Theme = {
  about: 'the disk refuses a new quota: a change that is refused has not happened',
  aimedAt: ['12'],
  async run(round) {
    const { keeper, random, history } = round
    round.excuses.internalErrors = true
    const server = await round.newServer({ diskBytes: MIB })
    for (const errno of ['EIO', 'ENOSPC', 'EROFS']) {
      const { body: before } = expectOk(await history.send({ method: 'GET', target: `/servers/${server.id}` }))
      await keeper.set({ files: [failing('(writeFile|rename|open).* agent/files/server-files', errno, random.int(2))] })
      const json = { limits: { diskBytes: 2 * MIB + random.int(1000) * 4096 } }
      const answer = await history.send({ method: 'PATCH', target: `/servers/${server.id}`, json })
      await keeper.set({ files: [] })
      const { body: after } = expectOk(await history.send({ method: 'GET', target: `/servers/${server.id}` }))
      const isChanged = after.limits.diskBytes !== before.limits.diskBytes
      round.expect(answer.op, 'server.changed', isChanged ? 1 : 0, `PATCH was answered with ${answer.kind}`)
      if (answer.kind === 'refused' && isChanged)
        round.violation(`PATCH of a quota was answered with ${answer.status} ${answer.code}, and took effect`)
    }
    server.quotaBytes = null
  },
}

export const deletedWhilePacking: Theme = {
  about: 'a server is deleted while an archive of it is being made: nothing is recorded after its end',
  aimedAt: ['12'],
  async run(round) {
    round.excuses.failedWork = true
    const server = await round.newServer()
    // Files that are open are read to their end, wherever their folder is by then.
    for (const name of ['a', 'b'])
      writeFileSync(join(filesFolder(round.keeper.dataDir, server.id), name), round.random.bytes(24 * MIB))
    const json = { files: ['a', 'b'], format: 'zip' }
    const asked = expectOk(await round.history.send({ method: 'POST', target: `/files/${server.id}/pack`, json }))
    await startDeletion(round, server)
    await statusEnd(round, server)
    // Its end, if it has one, is recorded within the time that it would have taken.
    const deadline = performance.now() + 5000
    for (let isEnded = false; !isEnded && performance.now() < deadline; await delay(100))
      isEnded = (await readActivity(round)).some(
        ({ event, properties }) => properties.jobId === asked.body.id && event !== 'job.started',
      )
  },
}

export const heldServer: Theme = {
  about: 'a server is deleted by mistake, also over a kill: files, backups, schedules and names can be had back',
  aimedAt: ['9'],
  async run(round) {
    const { keeper, random } = round
    const server = await round.newServer(undefined, 2)
    const neighbour = await round.newServer(undefined, 1)
    await workOn(round, [...server.plots, ...neighbour.plots], { steps: 8 })
    await makeBackup(round, server)
    await giveNameAndSchedule(round, server)
    const before = await describeServer(round, server)
    const promised = server.plots.flatMap(({ state }) => labelsOf(state))
    await startDeletion(round, server)
    if (random.chance(0.5)) {
      await keeper.kill()
      await keeper.start()
    }
    const status = await statusEnd(round, server)
    if (status !== 'deleted') round.violation(`${server.id} was deleted, and is ${status ?? 'not to be had back'}`)
    const held = labelsBelow(keeper.dataDir)
    const lost = promised.filter((label) => !held.has(label))
    if (lost.length > 0)
      round.violation(`${server.id} was deleted, and ${lost.length} of its files are nowhere at once`)
    await undelete(round, server)
    const after = await describeServer(round, server)
    if (after !== before) round.violation(`${server.id} came back as ${after}, and was ${before}`)
    await purge(round, neighbour)
  },
}

/** The name is looked up in DNS at the end. */
async function giveNameAndSchedule(round: Round, server: ServerModel): Promise<void> {
  const name = 'held'
  const asked = { name, zone: ZONE }
  const target = `/subdomains/${server.id}/subdomains`
  const { body } = expectOk(await round.history.send({ method: 'POST', target, json: asked }))
  round.subdomains.known.set(name, { serverId: server.id, id: body.id, isThere: true })
  const schedule = { name: 'Nightly', cron: '0 4 * * *' }
  await change(round, 'schedule.created', 'POST', `/backups/${server.id}/schedules`, schedule)
}

/** What a deletion must keep, as the API shows it. */
async function describeServer(round: Round, server: ServerModel): Promise<string> {
  const read = async (target: string) => {
    const outcome = await round.history.send({ method: 'GET', target })
    return outcome.kind === 'ok' ? outcome.body : outcome
  }
  const { name, port, limits, labels } = await read(`/servers/${server.id}`)
  const { data: schedules = [] } = await read(`/backups/${server.id}/schedules`)
  const told = schedules.map((each: { name: string; cron: string }) => `${each.name} ${each.cron}`)
  return JSON.stringify({ name, port, limits, labels, schedules: told })
}

export const twoProcesses: Theme = {
  about: 'a second process is started on the database of the first: it is refused, and harms nothing',
  aimedAt: ['8'],
  engines: ['postgres'],
  async run(round) {
    const server = await round.newServer(undefined, 1)
    await workOn(round, server.plots, { steps: 5 })
    await makeBackup(round, server)
    const elsewhere = mkdtempSync(join(tmpdir(), 'gamekeeper-second-'))
    // Without it, it would be refused for want of it.
    copyFileSync(join(round.keeper.dataDir, 'secret.key'), join(elsewhere, 'secret.key'))
    const env = { ...round.keeper.env(), GAMEKEEPER_DATA_DIR: elsewhere, GAMEKEEPER_DNS_PORT: '0' }
    const second = await spawnService(env).catch(() => undefined)
    if (second) round.violation('a second process was started on the database of the first')
    await workOn(round, server.plots, { steps: 5 })
    await makeBackup(round, server)
    await second?.kill('SIGKILL')
    rmSync(elsewhere, { recursive: true, force: true })
  },
}
