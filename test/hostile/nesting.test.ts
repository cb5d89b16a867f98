// Two things of half the depth that a path may have, put into each other in every way there is: nothing of it is deeper than
// it may be, and nothing is lost.
import assert from 'node:assert/strict'
import { mkdirSync, opendirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { archiveOf, entry } from '../../src/agent/files/archives/archives.testing.ts'
import { MAX_DEPTH } from '../../src/contract/fixed-limits.ts'
import { killLeftovers } from '../support/process.ts'
import { until } from '../support/until.ts'
import { attack } from './support/attack.ts'
import { openScene, type Tenant } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

const LEVELS = 100
const down = (levels: number, name = 'd') => `/${name}`.repeat(levels)
const DEEP = `/p${down(LEVELS - 1)}`

/** How many names the longest path in the folder has. */
function depthOf(folder: string): number {
  let deepest = 0
  using names = opendirSync(folder)
  for (let found = names.readSync(); found; found = names.readSync())
    deepest = Math.max(deepest, 1 + (found.isDirectory() ? depthOf(join(folder, found.name)) : 0))
  return deepest
}

const operations = ({ call, serverId, ended }: Tenant) => {
  const files = `/files/${serverId}`
  return {
    folder: (path: string, name: string) => call('POST', `${files}/folder`, { body: { path, name } }),
    move: (...moves: [from: string, to: string][]) =>
      call('POST', `${files}/move`, { body: { moves: moves.map(([from, to]) => ({ from, to })) } }),
    remove: (...paths: string[]) => call('DELETE', files, { body: { files: paths } }),
    copy: (location: string) => call('POST', `${files}/copy`, { body: { location } }),
    trash: () => call('GET', `${files}/trash`),
    takeBack: (trashId: string) => call('POST', `${files}/trash/${trashId}/restore`),
    async unpack(path: string, directory: string) {
      const asked = await call('POST', `${files}/unpack`, { body: { path, directory } })
      assert.equal(asked.status, 202, asked.text)
      return await ended(asked.body.id)
    },
  }
}

test('moves in one request, and at the same time, nest nothing deeper than it may be', async (t) => {
  const scene = await openScene(t)
  const { attacker } = scene
  const { folder, move, remove, copy } = operations(attacker)
  await folder(DEEP.slice(0, -2), 'd')
  await attack(scene, async ({ put }) => {
    await put(`/t${down(LEVELS - 2)}/kept`, 'kept')
    await folder('/', 's')
    const both = await move(['/t', '/s/t'], ['/s', `${DEEP}/s`])
    assert.deepEqual([both.status, both.body.code], [400, 'invalid_path'])
    assert.equal(depthOf(attacker.folder), LEVELS)

    for (let round = 0; round < sized(3, 60); round++) {
      await put(`/t${round}${down(LEVELS - 2)}/kept`, 'kept')
      await folder('/', `s${round}`)
      await put(`/c${round}/t${down(LEVELS - 3)}/kept`, 'kept')
      await Promise.all([
        move([`/t${round}`, `/s${round}/t`]),
        put(`/s${round}${down(LEVELS - 2)}/new`, 'new'),
        move([`/s${round}`, `${DEEP}/s${round}`]),
        copy(`/c${round}/t`).then(() => remove(`/c${round}/t`)),
        move([`/c${round}`, `${DEEP}/c${round}`]),
      ])
      assert.ok(depthOf(attacker.folder) <= MAX_DEPTH, `${depthOf(attacker.folder)} names`)
    }
  })
})

test('a copy whose original has gone goes nowhere deeper with the directory that it was begun in', async (t) => {
  const scene = await openScene(t)
  const { attacker } = scene
  const { folder, move, remove, copy } = operations(attacker)
  await folder(DEEP.slice(0, -2), 'd')
  await attack(scene, async () => {
    for (let round = 0; round < sized(2, 20); round++) {
      const inner = join(attacker.folder, `/s/t${down(90)}`)
      mkdirSync(inner, { recursive: true })
      for (let file = 0; file < 400; file++) writeFileSync(join(inner, String(file)), 'kept')
      const copying = copy('/s/t')
      const moving = (async () => {
        await remove('/s/t')
        return await move(['/s', `${DEEP}/s${round}`])
      })()
      await Promise.all([copying, moving])
      assert.ok(depthOf(attacker.folder) <= MAX_DEPTH, `${depthOf(attacker.folder)} names`)
      await remove('/s')
    }
  })
})

test('archives, trash and backups bring back what they have where it fits, and nothing deeper', async (t) => {
  const scene = await openScene(t)
  const { attacker } = scene
  const { call, put, serverId, ended } = attacker
  const { folder, remove, takeBack, trash, unpack, move } = operations(attacker)
  const inner = `${down(LEVELS, 'z').slice(1)}/kept`
  await attack(scene, async () => {
    await folder(DEEP.slice(0, -2), 'd')
    for (const format of ['zip', 'tar'] as const) {
      const members = [...Array(LEVELS).keys()].map((level) => entry(`${down(level + 1, 'z').slice(1)}/`))
      await put(`/deep.${format}`, await archiveOf(format, [...members, entry(inner, { text: 'kept' })]))
      const job = await unpack(`/deep.${format}`, DEEP)
      assert.equal(job.status, 'failed', JSON.stringify(job))
      assert.equal((await unpack(`/deep.${format}`, `/${format}`)).status, 'completed')
    }
    await put(`/world${down(MAX_DEPTH - 2)}/level`, 'kept')
    const backup = (await call('POST', `/backups/${serverId}`, { body: {} })).body.id
    await until(async () => (await call('GET', `/backups/${serverId}/${backup}`)).body.status === 'completed')
    await remove('/world', '/zip')
    // What is brought back must not go through what has its place now.
    await folder(DEEP.slice(0, -2), 'world')
    await move([`${DEEP.slice(0, -2)}/world`, '/world'])
    const items = (await trash()).body.data as { id: string; path: string }[]
    for (const { id } of items) assert.equal((await takeBack(id)).status, 200)
    const body = { paths: ['/world'], mode: 'replace', safetyBackup: false }
    const { id } = (await call('POST', `/backups/${serverId}/${backup}/restore`, { body })).body
    assert.equal((await ended(id)).status, 'completed')
    assert.equal(depthOf(attacker.folder), MAX_DEPTH)
    const kept = await call('GET', `/files/${serverId}/content?path=/world${down(MAX_DEPTH - 2)}/level`)
    assert.equal(kept.text, 'kept')
  })
})
