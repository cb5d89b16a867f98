import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { useCli } from '../../test/support/cli.ts'
import { olderNode } from '../../test/support/package.ts'
import { runBinary, runPiped, startBinary } from '../../test/support/terminal.ts'
import { CHECK_PENDING } from '../contract/readiness.ts'

const cli = useCli()
const { envOf, json } = cli

describe('doctor', () => {
  test('finds everything well, and says so as JSON too', async () => {
    const { healthy, findings } = await json('doctor')
    assert.equal(healthy, true)
    const byCheck = Object.fromEntries(
      findings.map((finding: { check: string; status: string }) => [finding.check, finding.status]),
    )
    for (const check of ['Node', 'data directory', 'service', 'database', 'clock', 'token', 'activity']) {
      assert.equal(byCheck[check], 'ok', check)
    }
  })

  test('names what is wrong and what to do', async () => {
    const bad = await runPiped(['doctor'], envOf(`gk_x_${'0'.repeat(64)}`))
    assert.equal(bad.code, 1)
    assert.match(bad.stdout, /^fail +token +.*revoked.*→/ms)
    const nobody = await runPiped(['doctor', '--url', 'http://127.0.0.1:9'], {})
    assert.equal(nobody.code, 1)
    assert.match(nobody.stdout, /^fail +service/m)
  })

  test('asks again after a check that a busy disk holds up, as it is slow and not broken', async () => {
    let asked = 0
    const busy = createHttpServer((_request, reply) => {
      const dataDirectory = ++asked < 3 ? CHECK_PENDING : 'ok'
      reply.writeHead(dataDirectory === 'ok' ? 200 : 503).end(JSON.stringify({ checks: { dataDirectory } }))
    }).listen(0, '127.0.0.1')
    await once(busy, 'listening')
    const url = `http://127.0.0.1:${(busy.address() as AddressInfo).port}`
    const { stdout } = await runPiped(['doctor', '--url', url], {})
    assert.match(stdout, /^ok +dataDirectory +ready$/m)
    assert.equal(asked, 3)
    busy.close()
  })
})

describe('the binary', () => {
  test('prints to the right place and exits with the code', async () => {
    const made = await runBinary(['server', 'create', 'Spawned', '--json'], { env: envOf() })
    assert.deepEqual([made.code, JSON.parse(made.stdout).name, made.stderr], [0, 'Spawned', ''])
    const table = await runBinary(['server', 'ls', '--search', 'Spawned'], { env: envOf() })
    assert.match(table.stdout, /^NAME +ID[^\n]*\nSpawned +srv_/)
    const absent = await runBinary(['server', 'show', 'srv_0'], { env: envOf() })
    assert.deepEqual([absent.code, absent.stdout], [4, ''])
    const wrong = await runBinary(['server', 'ls', '--jsn'], { env: envOf() })
    assert.equal(wrong.code, 2)
    assert.match(wrong.stderr, /Did you mean --json\?/)
  })

  const older = olderNode()
  if (older) {
    test('runs on the Node that npm brought when an older one starts it', async () => {
      // What the suite loads into every process is not for an older one.
      const env = { ...envOf(), NODE_OPTIONS: '' }
      const doctor = await runBinary(['doctor', '--json'], { env, cwd: cli.folder, node: older })
      assert.equal(doctor.code, 0)
      assert.equal(JSON.parse(doctor.stdout).findings[0].detail, process.version)
      assert.equal((await runBinary(['sever'], { env, node: older })).code, 2)
    })
  }

  test('serve shows the admin token once, works, and stops when told', async () => {
    const dataDir = join(cli.folder, 'served')
    const env = { GAMEKEEPER_PORT: '0', GAMEKEEPER_DATA_DIR: dataDir, GAMEKEEPER_LOG_LEVEL: 'fatal' }
    const child = startBinary(['serve', '--json'], { env })
    const [line] = await once(createInterface({ input: child.stdout }), 'line')
    const { url, adminToken } = JSON.parse(line)
    const listed = await runBinary(['server', 'ls', '--json'], {
      env: { GAMEKEEPER_URL: url, GAMEKEEPER_TOKEN: adminToken },
    })
    assert.deepEqual(JSON.parse(listed.stdout), [])
    const second = await runBinary(['serve'], { env })
    assert.equal(second.code, 2)
    child.kill('SIGINT')
    child.kill('SIGINT')
    const [code] = await once(child, 'exit')
    assert.equal(code, 0)
  })

  test('serve names every fault of its settings', async () => {
    const { code, stderr } = await runBinary(['serve'], { env: { GAMEKEEPER_PORT: 'x', GAMEKEEPER_PROT: '1' } })
    assert.equal(code, 2)
    assert.match(stderr, /^ {2}GAMEKEEPER_PORT must be.*\n {2}GAMEKEEPER_PROT is not a known setting$/m)
  })

  test('serve says in a sentence what stands against a start outside of it', async () => {
    const occupied = createServer().listen(0, '127.0.0.1')
    await once(occupied, 'listening')
    const { port } = occupied.address() as AddressInfo
    const env = { GAMEKEEPER_DATA_DIR: join(cli.folder, 'hindered'), GAMEKEEPER_LOG_LEVEL: 'fatal' }
    const listening = await runBinary(['serve'], { env: { ...env, GAMEKEEPER_PORT: String(port) } })
    assert.equal(listening.code, 1)
    assert.equal(
      listening.stderr,
      `error: Gamekeeper cannot listen on 127.0.0.1 port ${port}. Another program has that port.\n`,
    )
    occupied.close()
    await once(occupied, 'close')
    const database = `postgres://nobody:secret@127.0.0.1:${port}/none`
    const connecting = await runBinary(['serve'], { env: { ...env, GAMEKEEPER_DATABASE_URL: database } })
    assert.equal(connecting.code, 1)
    assert.match(
      connecting.stderr,
      /^error: The database of GAMEKEEPER_DATABASE_URL cannot be reached \(ECONNREFUSED\)\.\n$/,
    )
  })
})
