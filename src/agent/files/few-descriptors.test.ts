// Whatever fails for want of descriptors leaves none open, loses nothing, and can be done again.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { hasCode } from '../../kit/files/errno.ts'
import { newId } from '../../kit/ids.ts'
import { BY_THE_SYSTEM } from './changes/changes.ts'
import { openContent, streamContent, writeContent } from './content.ts'
import { atEveryShortage, cannotRunOut, type Operation, type Shortage, whileFew } from './few-descriptors.testing.ts'
import { openRoot } from './sandbox/directory.ts'
import { isSomethingMountedBeneath } from './sandbox/walk.ts'
import { bytes, request, serverId, startServer } from './server.testing.ts'
import { fillTree } from './trees.testing.ts'
import { writeBatch } from './uploads/batch.ts'
import { recordOf } from './uploads/partial-records.testing.ts'
import { createPartialUploads } from './uploads/partial-uploads.ts'

const FILES = {
  'world/region/r.0.mca': 'region',
  'world/level.dat': 'level',
  'server.properties': 'motd=hello',
}
type Server = Awaited<ReturnType<typeof startServer>>

const { signal } = new AbortController()
const change = (kind: string) => ({ kind, requestId: null, origin: BY_THE_SYSTEM })

async function start(t: TestContext) {
  // What a change that failed has left undone is told of, and looked at again before the next.
  const onUnexpected = (error: unknown) => assert.ok(hasCode(error, 'EMFILE'), error as Error)
  const started = await startServer(t, FILES, { onUnexpected })
  const { agent, folders } = started
  const reset = () => {
    for (const name of readdirSync(folders.files)) rmSync(join(folders.files, name), { recursive: true })
    fillTree(folders.files, FILES)
  }
  /** Of the server's files, by default. */
  const endures = async (operation: Partial<Operation> & Pick<Operation, 'work'>) => {
    await atEveryShortage({ reset, look: () => contentsOf(folders.files), ...operation })
    await agent.sweep()
    const staged = readdirSync(folders.staging).filter((name) => name.startsWith('tmp-'))
    assert.deepEqual(staged, [], 'what could not be taken away at once goes with the next sweep')
  }
  return { ...started, reset, endures }
}

function contentsOf(folder: string): Record<string, string> {
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
  const one = (path: string) => {
    const stats = statSync(join(folder, path))
    const mode = (stats.mode & 0o777).toString(8)
    return stats.isDirectory() ? mode : `${mode} ${readFileSync(join(folder, path), 'latin1')}`
  }
  return Object.fromEntries(found.map((path) => [path, one(path)]))
}

async function trashOf({ agent }: Pick<Server, 'agent'>): Promise<Record<string, string>> {
  const { items } = await agent.listTrash({ serverId })
  return Object.fromEntries(items.map(({ path, id }) => [path.slice(1), id]))
}

const promise = (name: string, run: (t: TestContext) => Promise<void>) =>
  test(name, { skip: cannotRunOut, timeout: 120_000 }, run)

promise('a folder and those above it are made, one by one, or not', async (t) => {
  const { agent, endures } = await start(t)
  const work = () => agent.makeFolder(request({ path: '/a/b/c', name: 'd' }))
  await endures({ work, mayBePart: true })
})

promise('a file is written in place of another or not at all', async (t) => {
  const { server, endures } = await start(t)
  const options = { change: change('file.written') }
  await endures({ work: () => writeContent(server, '/server.properties', bytes('motd=bye'), options) })
})

promise('a file is written with the folders above it or not at all', async (t) => {
  const { server, endures } = await start(t)
  await endures({ work: () => writeContent(server, '/a/b/c', bytes('x'), { change: change('file.written') }) })
})

promise('a tree is copied as a whole or not at all', async (t) => {
  const { agent, endures } = await start(t)
  await endures({ work: () => agent.copy(request({ location: '/world' })) })
})

for (const [what, from] of Object.entries({ file: '/server.properties', folder: '/world/region' })) {
  promise(`a ${what} is moved below new folders or stays where it was`, async (t) => {
    const { agent, endures } = await start(t)
    const moves = [{ from, to: '/a/b/moved' }]
    await endures({ work: () => agent.move(request({ moves })), mayBePart: what === 'folder' })
  })

  promise(`a ${what} is moved over a file or stays where it was`, async (t) => {
    const { agent, endures } = await start(t)
    const moves = [{ from, to: '/world/level.dat' }]
    await endures({ work: () => agent.move(request({ moves, overwrite: true })) })
  })
}

promise('moves that go back when a later one fails', async (t) => {
  const { agent, endures } = await start(t)
  const moves = [
    { from: '/world', to: '/a/b/moved' },
    { from: '/server.properties', to: '/c/d/e' },
  ]
  await endures({ work: () => agent.move(request({ moves })), shortages: ['at once'] })
})

promise('what is deleted is in its place or in the trash', async (t) => {
  const { agent, reset, endures, folders } = await start(t)
  const files = ['world/level.dat', 'server.properties']
  await endures({
    async reset() {
      await agent.emptyTrash(request({}))
      assert.deepEqual(readdirSync(folders.trash), [], 'what was begun and failed goes too')
      reset()
    },
    async look() {
      const [here, trash] = [contentsOf(folders.files), await trashOf({ agent })]
      return Object.fromEntries(files.map((path) => [path, here[path] ?? (path in trash ? 'in the trash' : 'lost')]))
    },
    work: () => agent.remove(request({ root: '/', files })),
    mayBePart: true,
  })
})

for (const [what, path] of Object.entries({ file: 'world/level.dat', folder: 'world/region' }))
  promise(`a ${what} that was deleted comes back or stays in the trash`, async (t) => {
    const { agent, reset, endures } = await start(t)
    let trashId = ''
    await endures({
      async reset() {
        await agent.emptyTrash(request({}))
        reset()
        for (const name of [path, 'world']) await agent.remove(request({ root: '/', files: [name] }))
        trashId = (await trashOf({ agent }))[path] ?? ''
      },
      work: () => agent.restoreTrash(request({ trashId })),
      mayBePart: what === 'folder',
    })
  })

promise('the trash is listed and emptied, one deletion after the other', async (t) => {
  const { agent, reset, endures } = await start(t)
  const look = async () => Object.fromEntries(Object.keys(await trashOf({ agent })).map((path) => [path, true]))
  await endures({
    async reset() {
      await agent.emptyTrash(request({}))
      reset()
      for (const name of ['world', 'server.properties']) await agent.remove(request({ root: '/', files: [name] }))
    },
    look,
    async work() {
      await look()
      await agent.emptyTrash(request({}))
    },
    mayBePart: true,
  })
})

promise('modes are set, and those that cannot be set back are told of', async (t) => {
  const { agent, endures } = await start(t)
  const files = ['world', 'world/level.dat', 'world/region/r.0.mca']
  await endures({ work: () => agent.setMode(request({ root: '/', files, mode: 0o750 })), mayBePart: true })
})

promise('what is read is all there, or not answered', async (t) => {
  const { agent, server, endures } = await start(t)
  await endures({
    async work() {
      const { entries } = await agent.list({ serverId, path: '/world' })
      assert.equal(entries.length, 2)
      const { matches } = await agent.search({ serverId, query: 'e', content: true })
      assert.equal(matches.length, 6)
      const { file } = openContent(server, '/world/region/r.0.mca')
      assert.equal(Buffer.concat(await streamContent(file).toArray()).toString(), 'region')
    },
  })
})

promise('what may be mounted beneath a tree is not passed over in silence', async (t) => {
  const { folders } = await start(t)
  using top = openRoot(folders.files)
  const { error } = await whileFew('at once', 0, () => isSomethingMountedBeneath(top))
  assert.ok(hasCode(error, 'EMFILE'), error as Error)
  assert.equal(isSomethingMountedBeneath(top), false)
})

promise('the files of a form are placed one by one, each of them or not', async (t) => {
  const { server, endures } = await start(t)
  async function* sources() {
    for (const name of ['up/one', 'server.properties']) yield { name, bytes: bytes('sent') }
  }
  const form = { directory: '/', overwrite: true, skipIdentical: true, maxBytes: 1e6, expectedBytes: 0 }
  const work = () => writeBatch(server, sources(), { ...form, signal, change: change('file.uploaded') })
  await endures({ work, mayBePart: true })
})

promise('an upload in parts goes on where it stopped', async (t) => {
  const { server, endures, reset } = await start(t)
  const uploads = createPartialUploads(server, async () => {})
  const text = 'two'
  const upload = (id: string) => recordOf(id, { path: '/a/server.properties', sizeBytes: text.length })
  let id = newId('upl')
  await endures({
    reset() {
      uploads.remove(id)
      id = newId('upl')
      reset()
    },
    async work() {
      if (!uploads.find(id)) await uploads.create(upload(id), 1e6)
      const offset = uploads.find(id)?.offset ?? 0
      for (let at = offset; at < text.length; at++) await uploads.append(id, bytes(text[at] ?? ''), { signal })
      await uploads.finish(id)
    },
  })
})

for (const format of ['zip', 'tar', 'tar.gz', 'tar.zst'] as const) {
  const context = () => ({ taskId: newId('job'), serverId, signal, report: () => {} })
  const packing = {
    kind: 'files.pack' as const,
    root: '/',
    files: ['world', 'server.properties'],
    format,
    target: '/p',
  }
  // The four differ in how bytes flow, which opens nothing.
  const shortages: Shortage[] = format === 'tar.gz' ? ['at once', 'in all'] : ['at once']

  promise(`${format}: files are packed or not`, async (t) => {
    const { agent, endures, at } = await start(t)
    const reset = () => rmSync(at('p'), { force: true })
    await endures({ reset, shortages, work: () => agent.handlers['files.pack'](packing, context()) })
  })

  promise(`${format}: an archive is unpacked beside what is there as a whole`, async (t) => {
    const { agent, endures, at } = await start(t)
    await agent.handlers['files.pack'](packing, context())
    const unpacking = { kind: 'files.unpack' as const, path: '/p', directory: '/a/b' }
    await endures({
      reset: () => rmSync(at('a'), { recursive: true, force: true }),
      work: () => agent.handlers['files.unpack'](unpacking, context()),
      mayBePart: true,
      shortages: ['at once'],
    })
    // Where nothing is left to go back with, a part of it stays, and goes to the trash when it is done again.
    if (shortages.includes('in all'))
      await endures({
        reset: () => rmSync(at('a'), { recursive: true, force: true }),
        work: () => agent.handlers['files.unpack']({ ...unpacking, overwrite: true }, context()),
        mayBePart: true,
        shortages: ['in all'],
      })
  })
}
