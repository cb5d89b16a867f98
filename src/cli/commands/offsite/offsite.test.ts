import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { needs } from '../../../../test/support/needs.ts'
import { runPiped } from '../../../../test/support/terminal.ts'
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

  it('says what is to be set where nothing is', async () => {
    const { code, stderr } = await runPiped(['offsite', 'test'], {})
    assert.equal(code, EXIT.failed)
    assert.match(stderr, /There is no bucket to test\. Set GAMEKEEPER_OFFSITE/)
  })
})
