// CVE-2023-25152, CVE-2023-25168, CVE-2024-27102, CVE-2026-0963, CVE-2026-0805: out of one's own folder by `..`, by a symlink
// that the game made, by one from an archive, and by one that is swapped in while we work.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { killLeftovers } from '../support/process.ts'
import { attack } from './support/attack.ts'
import { openScene, type Scene, type Tenant } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

const SECRET = 'what lies outside'

/** A folder that belongs to nobody here, with a file whose content must never be seen and never change. */
function outside(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-outside-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'secret'), SECRET, { mode: 0o600 })
  mkdirSync(join(folder, 'room'), { mode: 0o700 })
  return folder
}

function assertUntouched(folder: string): void {
  assert.deepEqual(readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort(), ['room', 'secret'])
  assert.equal(readFileSync(join(folder, 'secret'), 'utf8'), SECRET)
  const modes = ['secret', 'room'].map((name) => statSync(join(folder, name)).mode & 0o777)
  assert.deepEqual(modes, [0o600, 0o700])
}

/** Every operation on files, with the path at each place that takes one. */
async function tryEverything({ call, serverId, ended }: Tenant, path: string): Promise<string[]> {
  const at = encodeURIComponent(path)
  const files = `/files/${serverId}`
  const ways: [method: string, address: string, body?: object | string][] = [
    ['GET', `${files}?path=${at}`],
    ['GET', `${files}/content?path=${at}`],
    ['GET', `${files}/download?path=${at}`],
    ['GET', `${files}/search?q=out&content=true&path=${at}`],
    ['PUT', `${files}/content?path=${at}`, 'mine'],
    ['PUT', `${files}/content?path=${at}%2Fnew`, 'mine'],
    ['POST', `${files}/folder`, { path, name: 'new' }],
    ['POST', `${files}/copy`, { location: path }],
    ['POST', `${files}/move`, { moves: [{ from: path, to: '/taken' }] }],
    ['POST', `${files}/move`, { moves: [{ from: '/own', to: `${path}/own` }] }],
    ['DELETE', files, { root: path, files: ['secret'] }],
    ['DELETE', files, { files: [`${path}/secret`] }],
    ['POST', `${files}/mode`, { root: path, files: ['secret'], mode: '0777' }],
    ['POST', `${files}/mode`, { files: [path], mode: '0777' }],
    ['POST', `${files}/pack`, { root: path, files: ['secret'], format: 'tar', target: '/packed.tar' }],
    ['POST', `${files}/unpack`, { path: '/links.tar', directory: path }],
    ['POST', `/backups/${serverId}`, { ignored: `!${path}` }],
  ]
  const faults: string[] = []
  for (const [method, address, body] of ways) {
    const reply = await call(method, address, { body })
    if (reply.status >= 500) faults.push(`${method} ${address}: ${reply.status}`)
    if (reply.text.includes(SECRET)) faults.push(`${method} ${address} shows what lies outside`)
    if (reply.status === 202 && reply.body.kind) await ended(reply.body.id)
  }
  return faults
}

async function spellings({ victim }: Scene, folder: string): Promise<string[]> {
  const up = '../'.repeat(12)
  const neighbour = `../../${victim.serverId}/files`
  const plain = [neighbour, `/${neighbour}`, up + folder.slice(1), `/x/${up}${folder.slice(1)}`, folder, `//${folder}`]
  const bent = [neighbour.replaceAll('/', '\\'), neighbour.replaceAll('.', '%2e'), `${neighbour}\0`, '.', '..', '/..']
  // The links that the game and the archive have made.
  const links = [
    '/link',
    '/link/secret',
    '/own/deep',
    '/own/deep/secret',
    '/neighbour',
    '/neighbour/work',
    '/fromtar/out',
  ]
  return [...plain, ...bent, ...links]
}

/** An archive with a link that leaves, and a file that is to go through it. */
async function plantArchive({ folder, call, serverId, ended }: Tenant, outsideFolder: string): Promise<void> {
  const own = mkdtempSync(join(tmpdir(), 'gamekeeper-planted-'))
  symlinkSync(outsideFolder, join(own, 'out'))
  execFileSync('tar', ['-cf', join(folder, 'links.tar'), 'out'], { cwd: own })
  rmSync(join(own, 'out'))
  mkdirSync(join(own, 'out'))
  writeFileSync(join(own, 'out', 'planted'), 'mine')
  execFileSync('tar', ['-rf', join(folder, 'links.tar'), 'out/planted'], { cwd: own })
  rmSync(own, { recursive: true })
  const body = { path: '/links.tar', directory: '/fromtar' }
  await ended((await call('POST', `/files/${serverId}/unpack`, { body })).body.id)
}

test('no spelling of a path and no symlink leads out', async (t) => {
  const folder = outside(t)
  const scene = await openScene(t)
  const { attacker, victim } = scene
  await attack(scene, async () => {
    mkdirSync(join(attacker.folder, 'own'), { recursive: true })
    symlinkSync(folder, join(attacker.folder, 'link'))
    symlinkSync(`../../../../../../../../..${folder}`, join(attacker.folder, 'own', 'deep'))
    symlinkSync(victim.folder, join(attacker.folder, 'neighbour'))
    await plantArchive(attacker, folder)
    for (const path of await spellings(scene, folder)) assert.deepEqual(await tryEverything(attacker, path), [], path)
  })
  assertUntouched(folder)
})

test('a directory that becomes a symlink while we work in it leads nowhere', async (t) => {
  const folder = outside(t)
  const scene = await openScene(t)
  const { attacker } = scene
  const room = join(attacker.folder, 'room')
  mkdirSync(room, { recursive: true })
  writeFileSync(join(room, 'x'), 'mine')
  await attack(scene, async () => {
    let isOver = false
    const swapping = (async () => {
      for (let i = 0; !isOver; i++) {
        // The work may have taken either away meanwhile, or put a file in its place.
        try {
          renameSync(room, `${room}.real`)
          symlinkSync(folder, room)
        } catch {}
        await new Promise((resolve) => setImmediate(resolve))
        rmSync(room, { recursive: true, force: true })
        try {
          if (existsSync(`${room}.real`)) renameSync(`${room}.real`, room)
          else mkdirSync(room)
        } catch {}
        if (i % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    for (let round = 0; round < sized(3); round++) assert.deepEqual(await tryEverything(attacker, '/room'), [])
    isOver = true
    await swapping
  })
  assertUntouched(folder)
})
