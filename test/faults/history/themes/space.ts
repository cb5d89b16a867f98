// Senders that lie about sizes, disks that are full or read-only: a refusal changes nothing, the trash included.

import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { mount, withoutRoot } from '../../../../src/agent/files/trees.testing.ts'
import { makeBackup, restore } from '../actions.ts'
import { settlePlots } from '../checker/files.ts'
import { checkQuota } from '../checker/quotas.ts'
import { workOn } from '../clients.ts'
import { expectOk } from '../history.ts'
import { failing } from '../keeper.ts'
import { isOk } from '../model.ts'
import type { Round } from '../round.ts'
import type { Theme } from './theme.ts'

const MIB = 1024 * 1024
const GIB = 1024 * MIB
const TRASHING = { write: 3, remove: 3 } as const

export const lyingSizes: Theme = {
  about: 'requests announce more than any disk or quota holds; every trash stays as it was',
  aimedAt: ['1'],
  async run(round) {
    const small = await round.newServer({ diskBytes: MIB }, 1)
    const other = await round.newServer(undefined, 1)
    await workOn(round, [...small.plots, ...other.plots], { steps: 20, weights: TRASHING, maxBytes: 1000 })
    const link = async (serverId: string) =>
      expectOk(await round.history.send({ method: 'GET', target: `/files/${serverId}/upload` })).body.url as string
    const { url, token } = round.keeper
    const content = (serverId: string) => `${url}/v1/game/files/${serverId}/content?path=/lie`
    const bearer = { authorization: `Bearer ${token}` }
    const form = { 'content-type': 'multipart/form-data; boundary=b' }
    await announce(round, 'PUT', content(other.id), bearer, 100 * GIB)
    await announce(round, 'POST', `${await link(other.id)}?directory=/`, form, 9e15)
    await announceTus(round, await link(other.id), 9e15)
    await announceTus(round, await link(other.id), 100 * GIB - 1)
    settlePlots(round)
    await fillHalf(round, small.id)
    for (const bytes of [2 * MIB, 0.9 * MIB]) {
      await announce(round, 'PUT', content(small.id), bearer, Math.floor(bytes))
      await announce(round, 'POST', `${await link(small.id)}?directory=/`, form, Math.floor(bytes) + 2 * MIB)
      await announceTus(round, await link(small.id), Math.floor(bytes))
    }
    settlePlots(round)
  },
}

/** No trash that is emptied makes room for what comes then. */
async function fillHalf(round: Round, serverId: string): Promise<void> {
  const bytes = Buffer.alloc(MIB / 2)
  const written = await round.history.send({ method: 'PUT', target: `/files/${serverId}/content?path=/half`, bytes })
  round.expect(expectOk(written).op, 'file.written', 1, 'half of the quota was written')
}

/** Says how much it will send, sends a little, and leaves once it has been answered. */
function announce(
  round: Round,
  method: string,
  url: string,
  headers: Record<string, string>,
  bytes: number,
): Promise<void> {
  return new Promise((resolve) => {
    const request = httpRequest(url, { method, headers: { ...headers, 'content-length': bytes } })
    const over = (status: number | string) => {
      round.history.note({ announced: bytes, method, status })
      request.destroy()
      resolve()
    }
    request.on('response', (response) => over(response.statusCode ?? 0))
    request.on('error', (error) => over(error.message))
    request.write('x'.repeat(100))
  })
}

async function announceTus({ history }: Round, target: string, bytes: number): Promise<void> {
  const headers = {
    'tus-resumable': '1.0.0',
    'upload-length': String(bytes),
    'upload-metadata': `filename ${btoa('lie')}`,
  }
  await history.send({ method: 'POST', target, headers })
}

export const mergeQuota: Theme = {
  about: 'merge restores, again and again, into a quota that they do not fit into',
  aimedAt: ['11'],
  async run(round) {
    const server = await round.newServer({ diskBytes: 10 * MIB })
    const files = `/files/${server.id}`
    const bytes = Buffer.from(
      round.random
        .fork('content')
        .int(1e9)
        .toString()
        .repeat((4 * MIB) / 8),
    )
    const put = await round.history.send({ method: 'PUT', target: `${files}/content?path=/world`, bytes })
    round.expect(put.op, 'file.written', isOk(put) ? 1 : 0, 'a file was written')
    const backup = await makeBackup(round, server)
    for (let turn = 1; turn <= 4; turn++) {
      const moves = [{ from: '/world', to: `/world ${turn}` }]
      await round.history.send({ method: 'POST', target: `${files}/move`, json: { moves } })
      await restore(round, server, backup, { mode: 'merge', safetyBackup: false })
      checkQuota(round, server)
    }
    round.excuses.failedWork = true
  },
}

const DISK_BYTES = 48 * MIB
const onSmallDisk = {
  skip: withoutRoot,
  prepare: (dataDir: string) => mount(dataDir, '-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'none'),
}

export const fullDisk: Theme = {
  about: 'the disk is full to the last byte while clients go on; what is refused has not happened',
  aimedAt: ['16', '7'],
  ...onSmallDisk,
  async run(round) {
    const server = await round.newServer(undefined, 3)
    await workOn(round, server.plots, { steps: 12 })
    round.excuses.failedWork = true
    const filler = join(round.keeper.dataDir, 'filler')
    fillUp(filler)
    round.history.note({ chaos: 'the disk is full' })
    await checkNotReady(round, 'full')
    // Nothing that needs space for bytes: for those the trash may be emptied.
    const weights = { move: 4, remove: 3, makeFolder: 3, restoreTrash: 3 }
    await workOn(round, server.plots, { steps: 15, weights })
    await emptyTrashOf(round, server)
    rmSync(filler)
    settlePlots(round)
    await workOn(round, server.plots, { steps: 5 })
  },
}

/** A disk that is really mounted anew cannot have a process that writes to it. */
const CHANGING =
  '^(\\w*\\+w|(write|mkdir|rename|link|symlink|unlink|rm|rmdir|ftruncate|truncate|chmod|utimes|handle.write)\\w*) '

export const readOnlyDisk: Theme = {
  about: 'the disk has become read-only: not ready, every change refused with a code, nothing changed',
  aimedAt: ['16'],
  engines: ['postgres'],
  async run(round) {
    const server = await round.newServer(undefined, 2)
    await workOn(round, server.plots, { steps: 8 })
    const always = Number.MAX_SAFE_INTEGER
    await round.keeper.set({ files: [failing(CHANGING, 'EROFS', 0, always)] })
    await checkNotReady(round, 'read-only')
    await workOn(round, server.plots, { steps: 6 })
    await round.keeper.set({ files: [] })
    settlePlots(round)
  },
}

async function checkNotReady(round: Round, what: string): Promise<void> {
  const { status } = await fetch(`${round.keeper.url}/readyz`)
  if (status === 200) round.violation(`the data directory is ${what}, and /readyz answers 200`)
}

/** Refused or not, the entry must be there exactly when something was emptied. */
async function emptyTrashOf(round: Round, server: Round['servers'][number]): Promise<void> {
  const outcome = await round.history.send({ method: 'DELETE', target: `/files/${server.id}/trash` })
  const because = `the trash was emptied (${outcome.op}) and answered with ${outcome.kind}`
  if (outcome.kind === 'refused') {
    round.expect(outcome.op, 'file.trash_emptied', 0, because)
    return
  }
  round.expect(outcome.op, 'file.trash_emptied', 1, because)
  for (const plot of server.plots) plot.state = { ...plot.state, trash: [] }
}

function fillUp(path: string): void {
  const fd = openSync(path, 'w')
  try {
    for (let size = MIB; size >= 1; ) {
      try {
        writeSync(fd, Buffer.alloc(size))
      } catch {
        size = Math.floor(size / 16)
      }
    }
  } finally {
    closeSync(fd)
  }
}
