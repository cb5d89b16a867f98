import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { temporaryDirectory } from '../../../../test/support/daemons.ts'
import { createHttp } from '../../../../test/support/http.ts'
import { namesIn } from '../../../../test/support/mirror.ts'
import { needs } from '../../../../test/support/needs.ts'
import { spawnService } from '../../../../test/support/process.ts'
import { runPiped } from '../../../../test/support/terminal.ts'
import { until } from '../../../../test/support/until.ts'
import { startVersityGw, type VersityGw } from '../../../../test/support/versitygw.ts'
import { EXIT } from '../../exit-codes.ts'

describe('offsite test', needs('versitygw'), () => {
  let gateway: VersityGw
  before(async () => {
    gateway = await startVersityGw()
  })
  after(() => gateway.stop())

  const envOf = (secret = gateway.keys.secretAccessKey) => ({
    GAMEKEEPER_OFFSITE: `s3://${gateway.bucket}/castle?endpoint=${gateway.url}`,
    AWS_ACCESS_KEY_ID: gateway.keys.accessKeyId,
    AWS_SECRET_ACCESS_KEY: secret,
  })

  it('says a line for everything that was tried, and exits with 0 when nothing failed', async () => {
    const { code, stdout } = await runPiped(['offsite', 'test'], envOf())
    assert.equal(code, EXIT.ok, stdout)
    for (const check of ['bucket', 'clock', 'write', 'checksums', 'overwriting', 'read', 'list', 'delete', 'speed'])
      assert.match(stdout, new RegExp(`^ok    ${check} `, 'm'))
    assert.doesNotMatch(stdout, /secret-of-tests/)
  })

  it('exits with 1 and says why where the bucket will not do, as JSON too', async () => {
    const { code, stdout } = await runPiped(['offsite', 'test', '--json'], envOf('wrong'))
    assert.equal(code, EXIT.failed)
    const { usable, findings } = JSON.parse(stdout)
    assert.equal(usable, false)
    assert.equal(findings.at(-1).code, 'wrong_key')
    assert.match(findings.at(-1).detail, /The secret of the key is wrong/)
  })

  it('takes keys from the environment without the spaces and line breaks around them', async () => {
    const env = envOf(`${gateway.keys.secretAccessKey}\n`)
    const spaced = { ...env, AWS_ACCESS_KEY_ID: ` ${env.AWS_ACCESS_KEY_ID}\n` }
    const { code, stdout } = await runPiped(['offsite', 'test'], spaced)
    assert.equal(code, EXIT.ok, stdout)
  })

  it('three at once, while a service starts, do not disturb each other', async (t) => {
    const folder = temporaryDirectory('offsite-tests')
    t.after(() => folder.remove())
    const token = `gk_admin_${'ab'.repeat(32)}`
    const settings = { GAMEKEEPER_DATA_DIR: folder.path, GAMEKEEPER_ADMIN_TOKEN: token }
    const starting = spawnService({ ...envOf(), ...settings })
    const ran = await Promise.all([1, 2, 3].map(() => runPiped(['offsite', 'test'], envOf())))
    for (const { code, stdout } of ran) assert.equal(code, EXIT.ok, stdout)
    const service = await starting
    const { lastRun } = await until(async () => {
      const { body } = await createHttp(service.url, token).call('GET', '/offsite')
      return body.lastRun && body
    })
    assert.equal(lastRun.error, null)
    await service.kill('SIGTERM')
    assert.deepEqual(namesIn(gateway.dir, 'castle/probe'), [])
  })

  it('says what is to be set where nothing is', async () => {
    const { code, stderr } = await runPiped(['offsite', 'test'], {})
    assert.equal(code, EXIT.failed)
    assert.match(stderr, /There is no bucket to test\. Set GAMEKEEPER_OFFSITE/)
  })
})
