import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { it } from 'node:test'
import type { ArchiveFormat } from '../../../contract/agent/agent-files.ts'
import { assertSameTree, snapshot, temporaryFolder, testAgent } from '../backups.testing.ts'

const serverId = 'srv_a'

it('lists a directory in a backup page by page, however much lies beneath its entries', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf(serverId)
  const names = ['a', 'a-b', 'a.b', 'b', 'z', 'Ä', 'aa']
  for (const name of names) {
    mkdirSync(join(root, 'top', name), { recursive: true })
    for (let index = 0; index < 400; index++) writeFileSync(join(root, 'top', name, `file ${index}`), '')
  }
  writeFileSync(join(root, 'top', 'file'), 'content')
  const { backupId } = await agent.create(serverId)
  const seen: string[] = []
  let after: string | null = null
  do {
    const page: Awaited<ReturnType<typeof agent.backups.browse>> = await agent.backups.browse({
      serverId,
      backupId,
      path: '/top',
      limit: 3,
      after,
    })
    assert.ok(page.entries.length <= 3)
    seen.push(...page.entries.map(({ name }) => name))
    after = page.next
  } while (after !== null)
  assert.deepEqual(
    seen,
    [...names, 'file'].sort((x, y) => Buffer.compare(Buffer.from(x), Buffer.from(y))),
  )
  const [file] = (await agent.backups.browse({ serverId, backupId, path: '/top', limit: 1, after: 'b' })).entries
  assert.deepEqual([file?.path, file?.kind, file?.sizeBytes, file?.mode], ['/top/file', 'file', 7, '0644'])
  await assert.rejects(agent.backups.browse({ serverId, backupId, path: '/nope', limit: 1, after: null }), {
    code: 'not_found',
  })
  await assert.rejects(agent.backups.browse({ serverId, backupId, path: '/../x', limit: 1, after: null }), {
    code: 'invalid_path',
  })
})

it('reads one file out of a backup, whole and in part', async (t) => {
  const agent = await testAgent(t)
  const content = randomBytes(700_000)
  writeFileSync(join(agent.filesOf(serverId), 'file'), content)
  const { backupId } = await agent.create(serverId)
  const whole = await agent.backups.readFile({ serverId, backupId, path: '/file' })
  assert.equal(whole.sizeBytes, content.length)
  assert.deepEqual(await buffer(whole.stream), content)
  const part = await agent.backups.readFile({ serverId, backupId, path: '/file', start: 131_000, end: 400_001 })
  assert.deepEqual(await buffer(part.stream), content.subarray(131_000, 400_001))
  await assert.rejects(agent.backups.readFile({ serverId, backupId, path: '/none' }), { code: 'not_found' })
})

it('says which backups hold which versions of a file, and what changed between two trees', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf(serverId)
  writeFileSync(join(root, 'level'), 'one')
  writeFileSync(join(root, 'gone'), 'gone')
  const first = await agent.create(serverId)
  writeFileSync(join(root, 'other'), 'other')
  const second = await agent.create(serverId)
  writeFileSync(join(root, 'level'), 'two')
  rmSync(join(root, 'gone'))
  const third = await agent.create(serverId)
  const versions = await agent.backups.versions({ serverId, path: '/level' })
  assert.deepEqual(
    versions.map(({ backupId }) => backupId),
    [third, second, first].map(({ backupId }) => backupId),
  )
  assert.equal(versions[1]?.version, versions[2]?.version)
  assert.notEqual(versions[0]?.version, versions[1]?.version)
  const compare = async (to: string | null, after: string | null = null) => {
    const page = await agent.backups.compare(
      { serverId, from: first.backupId, to, limit: 2, after },
      AbortSignal.any([]),
    )
    return [page.changes.map(({ path, change }) => `${change} ${path}`), page.next]
  }
  for (const to of [third.backupId, null]) {
    assert.deepEqual(await compare(to), [['removed /gone', 'changed /level'], '/level'])
    assert.deepEqual(await compare(to, '/level'), [['added /other'], null])
  }
})

it('downloads as archives that the usual tools read, the same bytes each time, from any byte on', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf(serverId)
  mkdirSync(join(root, 'empty'))
  mkdirSync(join(root, 'world'))
  writeFileSync(join(root, 'world/region'), randomBytes(1_500_001))
  writeFileSync(join(root, 'world/text'), 'text '.repeat(100_000))
  writeFileSync(join(root, `${'long '.repeat(30)}name`), 'x')
  symlinkSync('world/text', join(root, 'link'))
  const { backupId } = await agent.create(serverId)
  const expected = Object.fromEntries(Object.entries(snapshot(root)).map(([path, { is }]) => [path, is]))
  const { signal } = new AbortController()
  const get = async (format: ArchiveFormat, start: number) => {
    const { stream, sizeBytes } = await agent.backups.download({ serverId, backupId, format, start, signal })
    return { bytes: await buffer(stream), sizeBytes }
  }
  for (const format of ['tar', 'tar.gz', 'tar.zst', 'zip'] as const) {
    const { bytes, sizeBytes } = await get(format, 0)
    if (format === 'tar') assert.equal(sizeBytes, bytes.length)
    for (const share of [0.1, 0.5, 0.93]) {
      const start = Math.floor(bytes.length * share)
      assert.ok((await get(format, start)).bytes.equals(bytes.subarray(start)), `${format} from ${start}`)
    }
    const left = AbortSignal.abort()
    const unwanted = async () => {
      const start = bytes.length - 1
      const { stream } = await agent.backups.download({ serverId, backupId, format, start, signal: left })
      return await buffer(stream)
    }
    await assert.rejects(unwanted(), { name: 'AbortError' }, `${format} goes on without a reader`)
    const folder = temporaryFolder(t)
    const archive = join(folder, `archive.${format}`)
    writeFileSync(archive, bytes)
    const target = join(folder, 'unpacked')
    mkdirSync(target)
    if (format === 'zip') execFileSync('unzip', ['-q', archive, '-d', target])
    else execFileSync('tar', ['--no-same-owner', '-xf', archive, '-C', target])
    const found = Object.fromEntries(Object.entries(snapshot(target)).map(([path, { is }]) => [path, is]))
    assert.deepEqual(found, expected, format)
  }
})

it('a downloaded file that is damaged ends the stream with an error, before a wrong byte', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf(serverId)
  writeFileSync(join(root, 'file'), randomBytes(600_000))
  const before = snapshot(root)
  const { backupId } = await agent.create(serverId)
  const { stream } = await agent.backups.readFile({ serverId, backupId, path: '/file' })
  execFileSync('sh', [
    '-c',
    `for f in $(find ${join(agent.storeDir, 'packs')} -type f); do printf X | dd of=$f bs=1 seek=300000 conv=notrunc status=none; done`,
  ])
  await assert.rejects(buffer(stream), { code: 'backup_damaged' })
  assertSameTree(snapshot(root), before)
})
