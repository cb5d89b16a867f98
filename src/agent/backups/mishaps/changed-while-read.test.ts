// What others do to a tree while a backup reads it: nothing that was there the whole time is missing or another file's, and where
// something may be missing the backup says so.
import assert from 'node:assert/strict'
import fs, {
  appendFileSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { BackupReport } from '../../../contract/agent/agent-backups.ts'
import { newId } from '../../../kit/ids.ts'
import { type TestAgent, testAgent } from '../backups.testing.ts'
import { untilLater } from '../passing/passing.testing.ts'

const SERVER = 'srv_a'
/** The walk opens it itself, and comes to it after everything but `z`. */
const LARGE = 'm'

interface Scene {
  agent: TestAgent
  at(path: string): string
}

async function scene(t: TestContext): Promise<Scene> {
  const agent = await testAgent(t)
  const root = agent.filesOf(SERVER)
  const at = (path: string) => join(root, path)
  writeFileSync(at(LARGE), Buffer.alloc(1024 ** 2, 1))
  return { agent, at }
}

/** A backup during which something happens once, just before the walk opens that file. */
async function backUpWhile(
  t: TestContext,
  agent: TestAgent,
  name: string,
  happens: () => void,
  options: { ignored?: string } = {},
): Promise<BackupReport> {
  const { openSync } = fs
  let isOver = false
  const opened = t.mock.method(fs, 'openSync', (...given: Parameters<typeof openSync>) => {
    if (!isOver && String(given[0]).endsWith(`/${name}`)) {
      isOver = true
      happens()
    }
    return openSync(...given)
  })
  syncBuiltinESMExports()
  try {
    return await agent.create(SERVER, options)
  } finally {
    opened.mock.restore()
    syncBuiltinESMExports()
    assert.ok(isOver)
  }
}

async function restored(agent: TestAgent, { backupId }: BackupReport): Promise<(path: string) => string> {
  const targetId = newId('srv')
  const root = agent.filesOf(targetId)
  await agent.restore(targetId, backupId, { sourceServerId: SERVER })
  return (path) => join(root, path)
}

test('a file keeps its content when its other name is given to another file during the backup', async (t) => {
  const { agent, at } = await scene(t)
  writeFileSync(at('a.dat'), 'version 1')
  linkSync(at('a.dat'), at('a.dat.old'))
  const backup = await backUpWhile(t, agent, LARGE, () => {
    writeFileSync(at('a.tmp'), 'version 2, of another length')
    renameSync(at('a.tmp'), at('a.dat'))
  })
  const out = await restored(agent, backup)
  assert.equal(readFileSync(out('a.dat.old'), 'utf8'), 'version 1')
  assert.equal(readFileSync(out('a.dat'), 'utf8'), 'version 1')
})

test('names of one file stay together though a game writes to it between them', async (t) => {
  const { agent, at } = await scene(t)
  writeFileSync(at('a'), 'version 1')
  linkSync(at('a'), at('z'))
  const backup = await backUpWhile(t, agent, LARGE, () => {
    untilLater(agent)
    appendFileSync(at('a'), ', and more')
  })
  assert.deepEqual(backup.warnings, [])
  const out = await restored(agent, backup)
  assert.equal(lstatSync(out('a')).ino, lstatSync(out('z')).ino)
  assert.equal(readFileSync(out('z'), 'utf8'), 'version 1, and more')
})

test('a file is in the backup though its first name vanishes before it is read', async (t) => {
  const { agent, at } = await scene(t)
  mkdirSync(at('a'))
  for (let index = 0; index < 20; index++) {
    writeFileSync(at(`a/${index}`), `the only copy of ${index}`)
    linkSync(at(`a/${index}`), at(`b${index}`))
  }
  const backup = await backUpWhile(t, agent, LARGE, () => rmSync(at('a'), { recursive: true }))
  const out = await restored(agent, backup)
  for (let index = 0; index < 20; index++)
    assert.equal(readFileSync(out(`b${index}`), 'utf8'), `the only copy of ${index}`)
})

test('another file that gets the inode number of one that was seen is not taken for it', async (t) => {
  const { agent, at } = await scene(t)
  mkdirSync(at('z'))
  writeFileSync(at('a'), 'the old snapshot')
  linkSync(at('a'), at('b'))
  const { mock } = t.mock.method(Date, 'now', () => Number(lstatSync(at('a'), { bigint: true }).ctimeMs) + 100_000)
  await agent.create(SERVER)
  mock.restore()
  writeFileSync(at(LARGE), Buffer.alloc(1024 ** 2, 2))
  // So that the walk lists it when it comes to it.
  writeFileSync(at('z/changed'), '')
  let isSameNumber = false
  const backup = await backUpWhile(t, agent, LARGE, () => {
    const { ino } = lstatSync(at('a'))
    unlinkSync(at('a'))
    unlinkSync(at('b'))
    // ext4 gives the number away at once; where a file system does not, there is nothing to take for anything.
    for (let tries = 0; tries < 100 && !isSameNumber; tries++) {
      writeFileSync(at(`z/${tries}`), 'the new world')
      isSameNumber = lstatSync(at(`z/${tries}`)).ino === ino
      if (isSameNumber) linkSync(at(`z/${tries}`), at('z/new'))
    }
    if (!isSameNumber) writeFileSync(at('z/new'), 'the new world')
  })
  const out = await restored(agent, backup)
  assert.equal(readFileSync(out('z/new'), 'utf8'), 'the new world')
})

test('a backup during which files were moved behind its back is not called offline, and the next one has them', async (t) => {
  const { agent, at } = await scene(t)
  mkdirSync(at('a'))
  mkdirSync(at('z/world'), { recursive: true })
  writeFileSync(at('z/world/r.0.0.mca'), 'region')
  assert.equal((await agent.create(SERVER)).consistency, 'offline')
  writeFileSync(at(LARGE), Buffer.alloc(1024 ** 2, 2))
  const backup = await backUpWhile(t, agent, LARGE, () => {
    untilLater(agent)
    renameSync(at('z/world'), at('a/world'))
  })
  assert.equal(backup.consistency, 'live')
  const next = await agent.create(SERVER)
  assert.equal(next.consistency, 'offline')
  assert.equal(readFileSync((await restored(agent, next))('a/world/r.0.0.mca'), 'utf8'), 'region')
})

test('what vanishes before a backup comes to it is named in the warnings, unless it is ignored', async (t) => {
  const { agent, at } = await scene(t)
  for (const name of ['n.dat', 'n.tmp']) writeFileSync(at(name), '')
  mkdirSync(at('z'))
  const removeAll = () => {
    for (const name of ['n.dat', 'n.tmp', 'z']) rmSync(at(name), { recursive: true })
  }
  const report = await backUpWhile(t, agent, LARGE, removeAll, { ignored: '*.tmp' })
  assert.deepEqual(report.warnings, ['/n.dat vanished before it was read.', '/z vanished before it was read.'])
  assert.equal(report.consistency, 'live')
})

test('where the way back up is cut off far down, the backup says what it may lack, and the next one has it', async (t) => {
  const { agent, at } = await scene(t)
  const path = (depth: number) => Array.from({ length: depth }, (_, index) => `d${index + 1}`).join('/')
  mkdirSync(at(path(40)), { recursive: true })
  for (let depth = 1; depth <= 40; depth++) writeFileSync(at(`${path(depth)}/file`), `level ${depth}`)
  writeFileSync(at(`${path(40)}/big`), Buffer.alloc(1024 ** 2, 1))
  const backup = await backUpWhile(t, agent, 'big', () => renameSync(at(path(40)), at('moved')))
  assert.match(backup.warnings.join(), /^A directory far below \/d1\/.*\/d31 was moved while it was read/)
  assert.equal(backup.consistency, 'live')
  const next = await restored(agent, await agent.create(SERVER))
  for (let depth = 1; depth < 40; depth++)
    assert.equal(readFileSync(next(`${path(depth)}/file`), 'utf8'), `level ${depth}`)
  assert.equal(readFileSync(next('moved/file'), 'utf8'), 'level 40')
})

test('every name of a file that is too sparse is in the warnings', async (t) => {
  const { agent, at } = await scene(t)
  writeFileSync(at('a'), '')
  truncateSync(at('a'), 65 * 1024 ** 3)
  linkSync(at('a'), at('b'))
  const { warnings } = await agent.create(SERVER)
  assert.equal(warnings.length, 2)
  assert.match(warnings[0] ?? '', /^\/a consists of so much empty space/)
  assert.match(warnings[1] ?? '', /^\/b is the same file as \/a, which could not be read/)
})

test('every name of a file that cannot be read is in the warnings', async (t) => {
  const { agent, at } = await scene(t)
  writeFileSync(at('a'), 'secret')
  linkSync(at('a'), at('b'))
  symlinkSync('a', at('c'))
  const { openSync } = fs
  t.mock.method(fs, 'openSync', (...given: Parameters<typeof openSync>) => {
    if (String(given[0]).endsWith('/a')) throw Object.assign(new Error('EACCES'), { code: 'EACCES' })
    if (String(given[0]).endsWith('/b')) throw Object.assign(new Error('EACCES'), { code: 'EACCES' })
    return openSync(...given)
  })
  syncBuiltinESMExports()
  const report = await agent.create(SERVER)
  t.mock.restoreAll()
  syncBuiltinESMExports()
  assert.equal(report.warnings.length, 2)
  assert.match(report.warnings[0] ?? '', /^\/a could not be read \(EACCES\)/)
  assert.match(report.warnings[1] ?? '', /^\/b could not be read \(EACCES\)/)
})
