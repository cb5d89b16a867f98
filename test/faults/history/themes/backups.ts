// Backups while others are deleted, restores that meet errors and typos, many in the queue, downloads that nobody waits for.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { deleteBackup, finishRestore, isUnfinished, makeBackup, restore, startBackup } from '../actions.ts'
import { filesFolder } from '../checker/disk.ts'
import { settlePlots } from '../checker/files.ts'
import { startAgain } from '../checker/index.ts'
import { backupEnd, jobEnd } from '../checker/work.ts'
import { workOn } from '../clients.ts'
import { expectOk } from '../history.ts'
import { failing } from '../keeper.ts'
import type { Round } from '../round.ts'
import type { Theme } from './theme.ts'

/** Enough for several chunks of a manifest. */
const MANY_FILES = 6000

export const deletedUnderNext: Theme = {
  about: 'the backup before is deleted while the next one is made from it, of a tree whose manifest has many chunks',
  aimedAt: ['3'],
  async run(round) {
    const server = await round.newServer()
    fillFolder(round, server.id, MANY_FILES)
    let last = await makeBackup(round, server)
    for (let turn = 0; turn < 3; turn++) {
      writeFileSync(join(filesFolder(round.keeper.dataDir, server.id), `f${turn}`), `changed ${turn}`)
      const next = await startBackup(round, server)
      if (!next) return
      await until(round, server.id, next.id, round.random.int(3))
      await deleteBackup(round, server, last)
      const { status } = await backupEnd(round, server.id, next.id)
      if (status !== 'completed') return
      last = next
    }
  },
}

/** What a game wrote: not through the API, so it has no entry. */
function fillFolder(round: Round, serverId: string, count: number): void {
  const folder = join(filesFolder(round.keeper.dataDir, serverId), 'world')
  mkdirSync(folder)
  for (let index = 0; index < count; index++)
    writeFileSync(join(folder, `region of the world, number ${String(index).padStart(8, '0')}.mca`), String(index))
}

/** Until the backup runs, and then so many turns more: at some of them its manifest is read. */
async function until(round: Round, serverId: string, backupId: string, turns: number): Promise<void> {
  for (let left = turns; left >= 0; ) {
    const { body } = expectOk(await round.history.send({ method: 'GET', target: `/backups/${serverId}/${backupId}` }))
    if (body.status === 'completed' || body.status === 'failed') return
    if (body.status === 'running') left--
  }
}

export const restoreTypos: Theme = {
  about: 'a restore names a path that is not there, three times; no backup goes for it',
  aimedAt: ['5'],
  async run(round) {
    const server = await round.newServer(undefined, 1)
    await workOn(round, server.plots, { steps: 6 })
    const backup = await makeBackup(round, server)
    for (let turn = 0; turn < 3; turn++) await restore(round, server, backup)
    for (let turn = 0; turn < 4; turn++) await restore(round, server, backup, { paths: [`/worlt ${turn}`] })
  },
}

/** What puts the new tree in place, after which there is no way back. */
const SWAP = '^(rename|link|unlink|mkdir|lchown|chmod|fchmod|utimes|lutimes)\\w* .*backups/restore/restore-forward'

export const brokenRestores: Theme = {
  about: 'a restore meets an error in the middle of its swap: the files are as they were, or it says that they are not',
  aimedAt: ['2'],
  async run(round) {
    const { keeper, random } = round
    round.excuses = { internalErrors: true, failedWork: true }
    const server = await round.newServer(undefined, 2)
    await workOn(round, server.plots, { steps: 10, weights: { write: 4, makeFolder: 1 } })
    const backup = await makeBackup(round, server)
    await workOn(round, server.plots, { steps: 10 })
    await keeper.set({ files: [failing(SWAP, random.pick(['EPERM', 'EACCES', 'EISDIR', 'EROFS']), random.int(8))] })
    const restored = await restore(round, server, backup, { safetyBackup: false })
    round.history.note({ restored, struck: (await keeper.seen()).struck })
    await keeper.set({ files: [] })
    if (!isUnfinished(restored)) settlePlots(round)
    // Refused where it is unfinished: then nothing may come of them.
    await workOn(round, server.plots, { steps: 5, weights: { write: 1 } })
    await keeper.kill()
    if (!isUnfinished(restored)) return await startAgain(round)
    await keeper.start()
    await workOn(round, server.plots, { steps: 2, weights: { write: 1 } })
    await finishRestore(round, server, backup, random.pick(['forward', 'back']))
    settlePlots(round)
  },
}

export const refusedRestoreEnd: Theme = {
  about: 'the database refuses the last write of a restore, and of a backup; what is said of them is true',
  aimedAt: ['2'],
  async run(round) {
    const { keeper } = round
    round.excuses = { internalErrors: true, failedWork: true }
    const server = await round.newServer(undefined, 1)
    await workOn(round, server.plots, { steps: 8, weights: { write: 1 } })
    const backup = await makeBackup(round, server)
    await workOn(round, server.plots, { steps: 8, weights: { write: 2, remove: 1 } })
    const before = server.plots.map((plot) => plot.state)
    const rule = { ...failing('update "jobs" set .*"result"', '', 0, 1) }
    await keeper.set({ statements: [rule] })
    const { status } = await restore(round, server, backup, { safetyBackup: false })
    await keeper.set({ statements: [] })
    round.history.note({ restored: status })
    if (status !== 'completed')
      for (const [index, plot] of server.plots.entries()) plot.state = before[index] ?? plot.state
    settlePlots(round)
  },
}

const CROWD = 230
/** The first backup takes this long, and all others wait for it. */
const FIRST_TAKES_SECONDS = 20
const BYTES_PER_SECOND = 1024 * 1024

export const longQueue: Theme = {
  about: 'backups of many servers wait in the queue; a restore and a pack elsewhere do not wait for them',
  aimedAt: ['10'],
  settings: { GAMEKEEPER_BACKUP_RATE: String(BYTES_PER_SECOND), GAMEKEEPER_BACKUPS_AT_ONCE: '1' },
  async run(round) {
    const busy = await round.newServer()
    const quiet = await round.newServer(undefined, 1)
    await workOn(round, quiet.plots, { steps: 3, weights: { write: 1 }, maxBytes: 1000 })
    const backup = await makeBackup(round, quiet)
    const world = join(filesFolder(round.keeper.dataDir, busy.id), 'world')
    writeFileSync(world, round.random.bytes(FIRST_TAKES_SECONDS * BYTES_PER_SECOND))
    const first = await startBackup(round, busy)
    for (let index = 0; index < CROWD; index += 10)
      await Promise.all(Array.from({ length: 10 }, () => queueElsewhere(round)))
    await restore(round, quiet, backup, { safetyBackup: false })
    const json = { files: ['p0'] }
    const pack = await round.history.send({ method: 'POST', target: `/files/${quiet.id}/pack`, json })
    if (pack.kind === 'ok') await jobEnd(round, quiet.id, pack.body.id)
    if (!first) return
    const { body } = expectOk(await round.history.send({ method: 'GET', target: `/backups/${busy.id}/${first.id}` }))
    if (body.status !== 'running')
      round.violation('a restore and a pack waited for backups of other servers that were in the queue')
    await deleteBackup(round, busy, first)
  },
}

/** One of the crowd: it is there to wait, and nobody looks at it afterwards. */
async function queueElsewhere({ history }: Round): Promise<void> {
  const { body } = expectOk(await history.send({ method: 'POST', target: '/servers', json: { name: 'Crowd' } }))
  await history.send({ method: 'POST', target: `/backups/${body.id}` })
}

const IDLE_MS = 300
const LEAVES_AFTER_MS = 100
const FORMATS = ['tar.gz', 'zip', 'tar.zst']

export const abortedRanges: Theme = {
  about: 'clients ask for ranges of an archive and leave; the service does not go on for nobody',
  aimedAt: ['12'],
  engines: ['sqlite'],
  async run(round) {
    const { keeper, random } = round
    const server = await round.newServer()
    const folder = filesFolder(keeper.dataDir, server.id)
    for (let index = 0; index < 12; index++)
      writeFileSync(join(folder, `region ${index}`), random.bytes(2 * 1024 * 1024))
    const [measured, unmeasured] = [await makeBackup(round, server), await makeBackup(round, server)]
    const target = (id: string, format: string) =>
      `${keeper.url}/v1/game/backups/${server.id}/${id}/download?format=${format}`
    const whole = await cpuOf(keeper.pid, () => download(target(measured.id, 'tar.gz'), keeper.token, false))
    const left = await cpuOf(keeper.pid, async () => {
      for (const format of FORMATS) await download(target(unmeasured.id, format), keeper.token, true)
      await untilIdle(keeper.pid)
    })
    round.history.note({ cpuTicks: { whole, left } })
    if (left > whole)
      round.violation('clients left their ranged downloads, and the service went on measuring for nobody')
  },
}

/** Until the process has done nothing to speak of for a while. */
async function untilIdle(pid: number): Promise<void> {
  while ((await cpuOf(pid, () => delay(IDLE_MS))) > 1);
}

/** Ticks of processor time that the process used meanwhile. */
async function cpuOf(pid: number, work: () => Promise<void>): Promise<number> {
  const ticks = () => {
    const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13, 15).map(Number)
    return user + system
  }
  const before = ticks()
  await work()
  return ticks() - before
}

/** The end of the archive, for which all of it has to be measured. */
function download(target: string, token: string, isLeaving: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, range: 'bytes=1000-2000' }
    const request = httpRequest(target, { headers, agent: false })
    request.on('response', (response) => response.resume().on('end', resolve))
    request.on('error', (error) => (isLeaving ? resolve() : reject(error)))
    request.end()
    if (isLeaving)
      request.on('socket', (socket) => socket.on('connect', () => setTimeout(() => request.destroy(), LEAVES_AFTER_MS)))
  })
}
