// Lists that are short by nature are paged as every other list is.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { OPERATIONS } from '../src/contract/index.ts'
import { createWorld } from './support/backups.ts'
import { onBothEngines } from './support/engines.ts'
import { startTestService, type TestService } from './support/service.ts'

const ZONES = ['one', 'two', 'three'].map((name) => ({
  zone: `${name}.example.org`,
  provider: 'embedded',
  target: '203.0.113.7',
}))

onBothEngines('paged lists', (engine) => {
  let service: TestService
  before(async () => {
    service = await startTestService({
      engine,
      env: { GAMEKEEPER_ZONES: JSON.stringify(ZONES), GAMEKEEPER_DNS_PORT: '0' },
    })
  })
  after(() => service.stop())

  async function pages(path: string, limit: number): Promise<unknown[][]> {
    const found: unknown[][] = []
    let cursor: string | null = null
    do {
      const separator = path.includes('?') ? '&' : '?'
      const next: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const { status, body } = await service.call('GET', `${path}${separator}limit=${limit}${next}`)
      assert.equal(status, 200, JSON.stringify(body))
      found.push(body.data)
      cursor = body.nextCursor
    } while (cursor !== null)
    return found
  }

  test('zones, schedules, versions and disks answer nextCursor, and take limit and cursor', async () => {
    const world = createWorld(service)
    const id = await world.server({ 'a.txt': 'one' })
    await world.backup(id)
    await world.write(id, { 'a.txt': 'two' })
    await world.backup(id)
    for (const hour of [1, 2, 3]) {
      const body = { name: `At ${hour}`, cron: `0 ${hour} * * *` }
      assert.equal((await service.call('POST', `/backups/${id}/schedules`, { body })).status, 201)
    }
    const lists = [
      [`/subdomains/${id}/zones`, 3],
      [`/backups/${id}/schedules`, 3],
      [`/files/${id}/versions?path=/a.txt`, 2],
      ['/disks', 1],
    ] as const
    for (const [path, count] of lists) {
      const whole = (await service.call('GET', path)).body
      assert.equal(whole.nextCursor, null, path)
      assert.ok(whole.data.length >= count, path)
      const withoutTimes = (disk: { freeBytes?: number }) => ({ ...disk, freeBytes: 0 })
      const single = await pages(path, 1)
      assert.ok(single.every((page) => page.length === 1))
      assert.deepEqual(
        single.flat().map((one) => withoutTimes(one as object)),
        whole.data.map(withoutTimes),
        path,
      )
      const separator = path.includes('?') ? '&' : '?'
      const at = (query: string) => service.call('GET', `${path}${separator}${query}`)
      for (const query of ['limit=0', 'limit=101', 'cursor=made-up'])
        assert.equal((await at(query)).body.code, 'invalid_request', `${path} ${query}`)
    }
    const { nextCursor } = (await service.call('GET', `/backups/${id}/schedules?limit=1`)).body
    const [first, second] = (await service.call('GET', `/backups/${id}/schedules`)).body.data
    assert.equal((await service.call('DELETE', `/backups/${id}/schedules/${first.id}`)).status, 204)
    const next = (await service.call('GET', `/backups/${id}/schedules?limit=1&cursor=${nextCursor}`)).body
    assert.equal(next.data[0].id, second.id, 'goes on where the last page ended, also when its last item is gone')
  })
})

test('every list is a page: whoever answers data alone is not a list', () => {
  const lists = OPERATIONS.filter(({ id, answers }) => {
    const schema = (answers as Record<number, { schema?: { properties?: object } }>)[200]?.schema
    return /^list/.test(id) && schema !== undefined && !('nextCursor' in (schema.properties ?? {}))
  })
  assert.deepEqual(
    lists.map(({ id }) => id),
    [],
  )
})
