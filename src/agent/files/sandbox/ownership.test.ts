import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, lchownSync, lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startAgent as startBackups, temporaryFolder } from '../../backups/backups.testing.ts'
import { formOf, startAgent } from '../../http/agent.testing.ts'
import { begun, patch } from '../../http/tus.testing.ts'
import { unpack } from '../archives/unpack.ts'
import { writeContent } from '../content.ts'
import { bytes, request, serverId, startServer } from '../server.testing.ts'
import { withoutRoot } from '../trees.testing.ts'

const TENANT = 54_321
const GAME = 54_322
const skip = withoutRoot()

/** Owner and the whole mode. */
function look(path: string): string {
  const { uid, gid, mode } = lstatSync(path)
  return `${uid}:${gid} ${(mode & 0o7777).toString(8)}`
}

/** A server whose top directory belongs to a user of its own. */
async function startOwned(t: TestContext, files: Record<string, string> = {}) {
  const started = await startServer(t, files)
  chownSync(started.folders.files, TENANT, TENANT)
  return started
}

test('writing over a setuid file keeps its owner, and nothing of its mode but the permissions', { skip }, async (t) => {
  const { server, at } = await startOwned(t, { game: 'old' })
  chownSync(at('game'), GAME, GAME)
  chmodSync(at('game'), 0o6755)
  await writeContent(server, '/game', bytes('of the tenant'))
  assert.equal(look(at('game')), `${GAME}:${GAME} 755`)
  chmodSync(at('game'), 0o1640)
  await writeContent(server, '/game', bytes('again'))
  assert.equal(look(at('game')), `${GAME}:${GAME} 640`)
})

test('what the service makes belongs to the server, not to the service', { skip }, async (t) => {
  const { agent, server, at } = await startOwned(t)
  await writeContent(server, '/made/by/put.txt', bytes('x'))
  await agent.makeFolder(request({ path: '/folder/in', name: 'folder' }))
  for (const path of ['made', 'made/by', 'folder', 'folder/in', 'folder/in/folder'])
    assert.equal(look(at(path)), `${TENANT}:${TENANT} 755`, path)
  assert.equal(look(at('made/by/put.txt')), `${TENANT}:${TENANT} 644`)
  await agent.remove(request({ root: '/', files: ['made'] }))
  const [item] = (await agent.listTrash({ serverId })).items
  rmSync(at('made'), { recursive: true, force: true })
  await agent.restoreTrash(request({ trashId: item?.id ?? '' }))
  assert.equal(look(at('made/by/put.txt')), `${TENANT}:${TENANT} 644`)
  await agent.move(request({ moves: [{ from: '/made', to: '/far/away' }] }))
  assert.equal(look(at('far')), `${TENANT}:${TENANT} 755`)
})

test('a copy has the permissions of its original, and belongs to the server', { skip }, async (t) => {
  const { agent, at } = await startOwned(t, { 'tree/suid': 'x', 'tree/sub/file': 'y', alone: 'z' })
  for (const path of ['tree/suid', 'alone']) chmodSync(at(path), 0o6755)
  chmodSync(at('tree/sub'), 0o3770)
  execFileSync('ln', ['-s', 'suid', at('tree/link')])
  lchownSync(at('tree/link'), GAME, GAME)
  await agent.copy(request({ location: '/alone' }))
  await agent.copy(request({ location: '/tree' }))
  const expected = {
    'alone copy': '755',
    'tree copy': '755',
    'tree copy/suid': '755',
    'tree copy/sub': '770',
    'tree copy/sub/file': '644',
    'tree copy/link': '777',
  }
  for (const [path, mode] of Object.entries(expected)) assert.equal(look(at(path)), `${TENANT}:${TENANT} ${mode}`, path)
})

test('what is unpacked belongs to the server, without setuid', { skip }, async (t) => {
  const { server, at } = await startOwned(t)
  mkdirSync(at('src/dir'), { recursive: true })
  writeFileSync(at('src/dir/suid'), 'x')
  chmodSync(at('src/dir/suid'), 0o6755)
  execFileSync('ln', ['-s', 'suid', at('src/dir/link')])
  execFileSync('tar', ['-cf', at('a.tar'), '-C', at('src'), 'dir'])
  const work = { kind: 'files.unpack', path: '/a.tar', directory: '/out' } as const
  await unpack(server, work, { taskId: 'job_1', signal: new AbortController().signal, report: () => {} })
  assert.equal(look(at('out')), `${TENANT}:${TENANT} 755`)
  assert.equal(look(at('out/dir')), `${TENANT}:${TENANT} 755`)
  assert.equal(look(at('out/dir/suid')), `${TENANT}:${TENANT} 755`)
  assert.equal(look(at('out/dir/link')), `${TENANT}:${TENANT} 777`)
})

test('uploads by form and by tus belong to the server, and never make a setuid file', { skip }, async (t) => {
  const agent = await startAgent(t)
  chownSync(agent.folders.files, TENANT, TENANT)
  for (const name of ['form', 'tus']) {
    writeFileSync(agent.at(name), 'old')
    chownSync(agent.at(name), GAME, GAME)
    chmodSync(agent.at(name), 0o6755)
  }
  const form = formOf({ form: 'new', 'sub/form': 'new' })
  assert.equal((await fetch(await agent.uploadUrl(), { method: 'POST', body: form })).status, 200)
  for (const name of ['tus', 'tus-new']) {
    const sent = await patch(await begun(agent, 3, name), 0, new Uint8Array(3))
    assert.equal(sent.status, 204)
  }
  assert.equal(look(agent.at('form')), `${GAME}:${GAME} 755`)
  assert.equal(look(agent.at('tus')), `${GAME}:${GAME} 755`)
  assert.equal(look(agent.at('sub')), `${TENANT}:${TENANT} 755`)
  assert.equal(look(agent.at('sub/form')), `${TENANT}:${TENANT} 644`)
  assert.equal(look(agent.at('tus-new')), `${TENANT}:${TENANT} 644`)
})

test('a restore gives files their owners back, and no setuid; directories keep setgid and sticky', {
  skip,
}, async (t) => {
  const agent = await startBackups(temporaryFolder(t))
  t.after(() => agent.stop())
  const files = agent.filesOf('srv_a')
  mkdirSync(join(files, 'dir'))
  writeFileSync(join(files, 'dir/suid'), 'x')
  chownSync(join(files, 'dir/suid'), GAME, GAME)
  chmodSync(join(files, 'dir/suid'), 0o6755)
  chmodSync(join(files, 'dir'), 0o3775)
  writeFileSync(join(files, 'kept'), 'y')
  chmodSync(join(files, 'kept'), 0o4711)
  const { backupId } = await agent.create('srv_a')
  rmSync(join(files, 'dir'), { recursive: true })
  await agent.restore('srv_a', backupId)
  assert.equal(look(join(files, 'dir/suid')), `${GAME}:${GAME} 755`)
  assert.equal(look(join(files, 'dir')), '0:0 3775')
  assert.equal(look(join(files, 'kept')), '0:0 711')
})
