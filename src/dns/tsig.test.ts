import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { suite, type TestContext, test } from 'node:test'
import { listeningPort } from '../../test/support/daemons.ts'
import { frame } from './exchange.ts'
import { type Change, isDnsFault } from './provider.ts'
import { createRfc2136 } from './rfc2136.ts'
import { createVerifier, sign } from './tsig.ts'

const key = { name: 'ours', secret: randomBytes(32) }
const now = () => 1_800_000_000_000
const seconds = now() / 1000
const message = Buffer.from('beef28000000000000000000', 'hex')

/** What a server that holds the key would answer: its own message, chained to the request's signature. */
function signedAnswer(requestMac: Buffer, by = key, at = seconds): Buffer {
  const prefix = Buffer.alloc(2)
  prefix.writeUInt16BE(requestMac.length)
  const answer = Buffer.from('beefa8000000000000000000', 'hex')
  return signChained(answer, Buffer.concat([prefix, requestMac]), by, at)
}

function signChained(answer: Buffer, chain: Buffer, by: typeof key, at: number): Buffer {
  const { message: signed } = sign(answer, by, at)
  const { mac } = sign(Buffer.concat([chain, answer]), by, at)
  const macAt = signed.length - 6 - mac.length
  mac.copy(signed, macAt)
  return signed
}

const refused = (error: unknown) => isDnsFault(error, 'refused')

suite('TSIG', () => {
  const { mac } = sign(message, key, seconds)
  const verify = (answer: Buffer) => createVerifier(key, mac, now).check(answer)

  test('takes an answer signed with the key for this request, and strips the signature', () => {
    assert.deepEqual(verify(signedAnswer(mac)), Buffer.from('beefa8000000000000000000', 'hex'))
  })

  test('refuses an answer that is unsigned, altered, old, for another request or by another key', () => {
    const altered = signedAnswer(mac)
    altered.writeUInt8(altered.readUInt8(3) ^ 1, 3)
    const wrong = [
      Buffer.from('beefa8000000000000000000', 'hex'),
      altered,
      signedAnswer(mac, key, seconds - 301),
      signedAnswer(randomBytes(32)),
      signedAnswer(mac, { name: 'ours', secret: randomBytes(32) }),
      signedAnswer(mac, { name: 'theirs', secret: key.secret }),
    ]
    for (const answer of wrong) assert.throws(() => verify(answer), refused)
  })

  test('a cut answer is malformed, not trusted', () => {
    const whole = signedAnswer(mac)
    for (let end = 12; end < whole.length; end++) assert.throws(() => verify(whole.subarray(0, end)))
  })
})

test('an update that somebody else answers with success is not believed', async (t: TestContext) => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (sent: Buffer) => {
      const answer = Buffer.alloc(12)
      sent.copy(answer, 0, 2, 4)
      answer.writeUInt16BE(0xa800, 2)
      socket.write(frame(answer))
    })
  }).listen(0, '127.0.0.1')
  const port = await listeningPort(server)
  t.after(async () => {
    server.close()
    await once(server, 'close')
  })
  const provider = createRfc2136({
    server: { host: '127.0.0.1', port },
    keyName: key.name,
    keySecret: key.secret.toString('base64'),
  })
  const change: Change = { name: 'a.play.test', type: 'A', ttl: 60, records: [{ address: '192.0.2.1' }] }
  await assert.rejects(provider.apply('play.test', [change]), refused)
})
