// The last bytes and the last entries of a quota, asked for twenty times at once: they are given once.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { after, test } from 'node:test'
import { killLeftovers } from '../support/process.ts'
import { until } from '../support/until.ts'
import { attack } from './support/attack.ts'
import { onEngines } from './support/engine.ts'
import { openScene, type Tenant } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

const KIB = 1024
const AT_ONCE = 20

const atOnce = <T>(work: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: AT_ONCE }, (_, index) => work(index)))

/** Files and directories, and the blocks that they take, as the disk has them. */
function onDisk(folder: string): { entries: number; bytes: number } {
  const entries = readdirSync(folder, { recursive: true }).length
  const [kib = ''] = execFileSync('du', ['-sk', folder], { encoding: 'utf8' }).split('\t')
  return { entries, bytes: Number(kib) * KIB }
}

async function uploadForm({ call, serverId }: Tenant, directory: string, content: Buffer): Promise<number> {
  const link: string = (await call('GET', `/files/${serverId}/upload`)).body.url
  const form = new FormData()
  form.append('files', new Blob([content as BlobPart]), 'part.bin')
  return (await fetch(`${link}?directory=${directory}`, { method: 'POST', body: form })).status
}

async function backUp({ call, serverId }: Tenant): Promise<string> {
  const { id } = (await call('POST', `/backups/${serverId}`, { body: {} })).body
  await until(async () => (await call('GET', `/backups/${serverId}/${id}`)).body.status === 'completed')
  return id
}

onEngines('the last of a quota', (engine) => {
  test('its last bytes are given once to uploads and copies that come at the same time', async (t) => {
    const limits = { diskBytes: 1024 * KIB }
    const scene = await openScene(t, { engine, limits })
    const { attacker } = scene
    const { call, serverId, put, folder } = attacker
    await attack(scene, async () => {
      for (let round = 0; round < sized(2, 20); round++) {
        const content = Buffer.alloc(300 * KIB, round)
        assert.equal((await put('/first.bin', content)).status, 201)
        const statuses = (
          await Promise.all([
            atOnce(async (index) => (await put(`/new-${index}/part.bin`, content)).status),
            atOnce(() => uploadForm(attacker, '/form', content)),
            atOnce(
              async () => (await call('POST', `/files/${serverId}/copy`, { body: { location: '/first.bin' } })).status,
            ),
          ])
        ).flat()
        const { bytes } = onDisk(folder)
        assert.ok(bytes <= limits.diskBytes + 4 * KIB, `${bytes} bytes in a quota of ${limits.diskBytes}`)
        assert.deepEqual(
          [...new Set(statuses)].filter((status) => ![200, 201, 409].includes(status)),
          [],
        )
        assert.ok(statuses.includes(409))
        const names = readdirSync(folder)
        await call('DELETE', `/files/${serverId}`, { body: { files: names } })
        assert.equal((await call('DELETE', `/files/${serverId}/trash`)).status, 200)
      }
    })
    const { body } = await call('GET', `/files/${serverId}/usage`)
    assert.deepEqual([body.reservedBytes, body.reservedEntries], [0, 0])
  })

  test('its last entries are given once to folders, uploads, copies and restores that come at the same time', async (t) => {
    const limits = { entries: 60 }
    const scene = await openScene(t, { engine, limits })
    const { attacker } = scene
    const { call, serverId, put, folder, ended } = attacker
    await attack(scene, async () => {
      for (let index = 0; index < 20; index++) await put(`/kept/${index}`, 'kept')
      const backup = await backUp(attacker)
      await call('DELETE', `/files/${serverId}`, { body: { files: ['/kept'] } })
      await call('DELETE', `/files/${serverId}/trash`)
      await put('/tree/a', 'a')
      const restore = async () => {
        const body = { paths: ['/kept'], mode: 'merge', safetyBackup: false }
        const asked = await call('POST', `/backups/${serverId}/${backup}/restore`, { body })
        return asked.status === 202 ? (await ended(asked.body.id)).status : asked.status
      }
      const restored = restore()
      const statuses = (
        await Promise.all([
          atOnce(async (index) => (await put(`/new/${index}/part`, 'x')).status),
          atOnce(
            async (index) =>
              (
                await call('POST', `/files/${serverId}/folder`, { body: { path: '/dirs', name: `${index}` } })
              ).status,
          ),
          atOnce(async () => (await call('POST', `/files/${serverId}/copy`, { body: { location: '/tree' } })).status),
          atOnce(() => uploadForm(attacker, '/form', Buffer.from('x'))),
        ])
      ).flat()
      await restored
      const { entries } = onDisk(folder)
      assert.ok(entries <= limits.entries, `${entries} entries where ${limits.entries} may be`)
      assert.deepEqual(
        [...new Set(statuses)].filter((status) => ![200, 201, 409].includes(status)),
        [],
      )
    })
    const { body } = await call('GET', `/files/${serverId}/usage`)
    assert.equal(body.reservedEntries, 0)
  })
})
