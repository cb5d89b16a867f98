import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { openDescriptors } from '../trees.testing.ts'
import { openRoot } from './directory.ts'
import type { Lookers } from './look-ahead.ts'
import { look } from './looked.ts'
import { openWalk } from './walk.ts'

/** More than a walk passes before it asks: small directories, nested ones, one that is too large to be listed, odd names. */
function makeTree(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), 'gamekeeper-look-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const fill = (folder: string, count: number) => {
    mkdirSync(join(root, folder), { recursive: true })
    for (let file = 0; file < count; file++) writeFileSync(join(root, folder, `file-${file}`), folder)
  }
  for (let folder = 0; folder < 150; folder++) fill(`small-${folder}/within/deep`, 8)
  fill('large', 4200)
  fill('middle', 700)
  fill('würfel', 3)
  writeFileSync(Buffer.concat([Buffer.from(`${root}/middle/`), Buffer.of(0xff, 0xfe)]), 'not UTF-8')
  symlinkSync('large', join(root, 'link'))
  mkdirSync(join(root, 'empty'))
  return root
}

async function walked(root: string, lookers?: Lookers, onEntry: (path: string) => void = () => {}): Promise<string[]> {
  using top = openRoot(root)
  using tree = openWalk(top, lookers ? { sorted: true, lookers } : { sorted: true })
  const found: string[] = []
  for (;;) {
    await tree.waits()
    const entry = tree.next()
    if (!entry) return found
    onEntry(entry.path)
    const { mode, dev, ino, nlink, uid, gid, size, blocks, mtimeMs, mtimeNs, ctimeNs } = entry.stats
    const kind = entry.stats.isFile() ? 'file' : entry.stats.isDirectory() ? 'directory' : 'other'
    found.push([entry.path, kind, mode, dev, ino, nlink, uid, gid, size, blocks, mtimeMs, mtimeNs, ctimeNs].join(' '))
  }
}

/** As another thread does, later. */
function createLookers(areStarted = true) {
  const asked: { names: number; listed: string[] }[] = []
  const lookers: Lookers = {
    areStarted: () => areStarted,
    async look(address, names) {
      await Promise.resolve()
      const looked = look(address, names)
      asked.push({ names: names.length, listed: [...looked.lists.keys()].map((index) => names[index] ?? '') })
      return structuredClone(looked)
    },
  }
  return { asked, lookers }
}

test('a walk that has others look ahead gives what one gives that looks itself', async (t) => {
  const root = makeTree(t)
  const { asked, lookers } = createLookers()
  const before = openDescriptors()
  const plain = await walked(root)
  assert.deepEqual(await walked(root, lookers), plain)
  assert.ok(plain.length > 6000)
  assert.ok(
    asked.some(({ listed }) => listed.length > 0) && asked.some(({ names }) => names > 100),
    JSON.stringify(asked),
  )
  assert.deepEqual(openDescriptors(), before)
})

test('where others fail, or are never asked, the walk looks itself', async (t) => {
  const root = makeTree(t)
  const plain = await walked(root)
  const look = () => Promise.reject(new Error('the thread has ended'))
  assert.deepEqual(await walked(root, { areStarted: () => true, look }), plain)
})

test('nobody is started for a tree that is walked before they could answer', async (t) => {
  const root = makeTree(t)
  const { asked, lookers } = createLookers(false)
  await walked(root, lookers)
  assert.deepEqual(asked, [])
  for (let file = 0; file < 6000; file++) writeFileSync(join(root, 'middle', `more-${file}`), '')
  const all = await walked(root)
  assert.ok(all.length > 10_000)
  assert.deepEqual(await walked(root, lookers), all)
  assert.ok(asked.length > 0)
})

test('what was listed of a directory is not taken for what another holds that has its name by then', async (t) => {
  const root = makeTree(t)
  const aside = `${root}-aside`
  t.after(() => rmSync(aside, { recursive: true, force: true }))
  const { asked, lookers } = createLookers()
  let replaced = ''
  const found = await walked(root, lookers, (path) => {
    if (replaced !== '' || !path.startsWith('/small-')) return
    replaced = asked.flatMap(({ listed }) => listed).find((name) => `/${name}` > path) ?? ''
    if (replaced === '') return
    renameSync(join(root, replaced), aside)
    mkdirSync(join(root, replaced))
    writeFileSync(join(root, replaced, 'new'), '')
  })
  const within = found.map((line) => line.split(' ')[0] ?? '').filter((path) => path.startsWith(`/${replaced}/`))
  assert.deepEqual(within, [`/${replaced}/new`])
})

test('names that others listed do not count for a directory that the walk looked at itself later', async (t) => {
  const root = makeTree(t)
  const answer = Promise.withResolvers<void>()
  const listed: string[] = []
  const lookers: Lookers = {
    areStarted: () => true,
    async look(address, names) {
      const looked = look(address, names)
      listed.push(...[...looked.lists.keys()].map((index) => names[index] ?? ''))
      await answer.promise
      return looked
    },
  }
  using top = openRoot(root)
  using tree = openWalk(top, { sorted: true, lookers })
  const found: string[] = []
  let changed = ''
  for (;;) {
    await tree.waits()
    const entry = tree.next()
    if (!entry) break
    found.push(entry.path)
    if (changed === '') {
      changed = listed.find((name) => name.startsWith('small-') && `/${name}` > entry.path) ?? ''
      if (changed !== '') writeFileSync(join(root, changed, 'new'), '')
    } else if (entry.path === `/${changed}`) {
      answer.resolve()
      await setImmediate()
    }
  }
  assert.ok(found.includes(`/${changed}/new`), changed)
})
