// A program that has mapped a file writes to it without a system call: only its first write to a page changes the file's times.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { needs } from '../../../../test/support/needs.ts'
import { newId } from '../../../kit/ids.ts'
import { type TestAgent, testAgent } from '../backups.testing.ts'
import { openManifest } from '../format/manifest.ts'

const SERVER = 'srv_a'
const TMPFS = 0x01021994

/** Python, since Node cannot map files. What it is told becomes the first bytes of the file. */
const PROGRAM = `
import mmap, sys
file = open(sys.argv[1], 'r+b')
page = mmap.mmap(file.fileno(), 0)
for line in sys.stdin:
    page[0:len(line) - 1] = line[:-1].encode()
    print('written', flush=True)
`

function mapFile(t: TestContext, path: string) {
  const child = spawn('python3', ['-u', '-c', PROGRAM, path], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  return {
    async write(text: string): Promise<void> {
      child.stdin.write(`${text}\n`)
      await once(child.stdout, 'data')
    },
    async end(): Promise<void> {
      child.stdin.end()
      await once(child, 'exit')
    },
  }
}

async function restoredFile(agent: TestAgent, backupId: string, name: string): Promise<string> {
  const targetId = newId('srv')
  const root = agent.filesOf(targetId)
  await agent.restore(targetId, backupId, { sourceServerId: SERVER })
  return readFileSync(join(root, name), 'latin1').slice(0, 5)
}

/** The clock of the service, and not that of the kernel, is so much later. */
const putForward = (t: TestContext, ms: number) => {
  const { now } = Date
  return t.mock.method(Date, 'now', () => now() + ms)
}

test('what is written to a mapped page after a backup has read it is in the next one', needs('python'), async (t) => {
  const agent = await testAgent(t)
  if (statfsSync(agent.dataDir).type === TMPFS) return t.skip('a tmpfs never writes pages back')
  const path = join(agent.filesOf(SERVER), 'world.db')
  writeFileSync(path, Buffer.alloc(4096, '.'))
  const mapped = mapFile(t, path)
  await mapped.write('day 1')
  // Its times are a second old by then.
  putForward(t, 5000)
  const first = await agent.create(SERVER)
  await mapped.write('day 2')
  await mapped.end()
  const second = await agent.create(SERVER)
  assert.equal(await restoredFile(agent, first.backupId, 'world.db'), 'day 1')
  assert.equal(await restoredFile(agent, second.backupId, 'world.db'), 'day 2')
})

test('of many young files some are written to the disk first, and the others are read again by the next backup', async (t) => {
  const agent = await testAgent(t)
  const root = agent.filesOf(SERVER)
  for (let index = 0; index < 100; index++) writeFileSync(join(root, `${index}`), `${index}`)
  const settledOf = async () => {
    const { backupId } = await agent.create(SERVER)
    const { blobs, sealer } = await agent.backups.repository()
    const manifest = await openManifest(blobs, sealer, { serverId: SERVER, backupId })
    let settled = 0
    for await (const { kind, isSettled } of manifest.entries()) if (kind === 'file' && isSettled) settled++
    return settled
  }
  const { mock } = putForward(t, 5000)
  assert.equal(await settledOf(), 64)
  mock.restore()
  putForward(t, 100_000)
  assert.equal(await settledOf(), 100)
})
