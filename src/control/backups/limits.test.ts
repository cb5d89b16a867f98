// What bounds backups: their turns, the disk, and the key.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { createWorld, SLOWEST_RATE } from '../../../test/support/backups.ts'
import { startTestService } from '../../../test/support/service.ts'
import { ConfigFault, readConfig } from '../config.ts'

test('a server with many backups queued does not keep the others waiting', async () => {
  const env = { GAMEKEEPER_BACKUPS_AT_ONCE: '1', GAMEKEEPER_BACKUP_RATE: SLOWEST_RATE }
  await using service = await startTestService({ env })
  const world = createWorld(service)
  const endless = await world.server({ big: randomBytes(20_000_000) })
  const busy = await world.server({ small: 'x' })
  const other = await world.server({ small: 'x' })
  // Nobody has a turn before all have asked.
  const [inTheWay] = await world.start(endless, 1)
  const many = await world.start(busy, 6)
  const [one = ''] = await world.start(other, 1)
  assert.equal((await service.call('DELETE', `/backups/${endless}/${inTheWay}`)).status, 204)
  const { startedAt } = await world.ended(other, one)
  const last = await world.ended(busy, many.at(-1) ?? '')
  assert.ok((startedAt ?? '') < (last.startedAt ?? ''), `${startedAt} ${last.startedAt}`)
})

test('with a key nothing of the content is to be read in the store, and another key is refused', async () => {
  const key = randomBytes(32).toString('hex')
  await using service = await startTestService({ env: { GAMEKEEPER_BACKUP_KEY: key } })
  const world = createWorld(service)
  const server = await world.server({ 'secret-plans.txt': 'the treasure is under the third tower' })
  const { id } = await world.backup(server, { name: 'Hidden name' })
  const store = join(service.dataDir, 'backups')
  for (const entry of await readdir(store, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const bytes = await readFile(join(entry.parentPath, entry.name))
    for (const text of ['treasure', 'secret-plans', 'Hidden name'])
      assert.equal(bytes.includes(text), false, entry.name)
  }
  await service.restart()
  assert.equal((await world.restore(server, id)).status, 'completed')
})

test('a key is given once, in hex, and faults name it', () => {
  const faults = (env: Record<string, string>) => {
    try {
      readConfig(env)
      return []
    } catch (error) {
      assert.ok(error instanceof ConfigFault)
      return error.faults
    }
  }
  const key = 'ab'.repeat(32)
  assert.match(faults({ GAMEKEEPER_BACKUP_KEY: 'abc' })[0] ?? '', /BACKUP_KEY must be 64 hex digits/)
  assert.match(faults({ GAMEKEEPER_BACKUP_KEY_FILE: '/nowhere' })[0] ?? '', /cannot be read/)
  assert.match(faults({ GAMEKEEPER_BACKUPS_AT_ONCE: '0' })[0] ?? '', /from 1 to 64/)
  assert.deepEqual(faults({ GAMEKEEPER_BACKUP_KEY: key, GAMEKEEPER_BACKUP_RATE: '1000000' }), [])
})
