import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { formatData, parseData } from './presentation.ts'
import { type Change, checkChanges, checkConflicts, type DnsProvider, isDnsFault, withTimeout } from './provider.ts'
import { type RecordSet, sameRecordSet } from './records.ts'
import { decodeData, encodeData } from './wire.ts'

const a = (name: string, ...addresses: string[]): RecordSet & { type: 'A' } => {
  return { name, type: 'A', ttl: 60, records: addresses.map((address) => ({ address })) }
}

suite('record sets', () => {
  test('are the same in any case, order, repetition and spelling', () => {
    assert.ok(sameRecordSet(a('A.test.', '192.0.2.1', '192.0.2.2'), a('a.TEST', '192.0.2.2', '192.0.2.1', '192.0.2.1')))
    const six = (address: string): RecordSet => ({ name: 'a.test', type: 'AAAA', ttl: 60, records: [{ address }] })
    assert.ok(sameRecordSet(six('2001:DB8:0:0::1'), six('2001:db8::1')))
  })

  test('differ by TTL, name, type and any record', () => {
    const one = a('a.test', '192.0.2.1')
    for (const other of [{ ...one, ttl: 61 }, a('b.test', '192.0.2.1'), a('a.test', '192.0.2.2'), a('a.test')]) {
      assert.equal(sameRecordSet(one, other), false)
    }
    const txt = (text: string): RecordSet => ({ name: 'a.test', type: 'TXT', ttl: 60, records: [{ text }] })
    assert.equal(sameRecordSet(txt('Owner'), txt('owner')), false)
  })

  test('any text comes back from its presentation and from the wire', () => {
    const text = fc.string({ unit: 'binary', maxLength: 700 })
    fc.assert(
      fc.property(text, (value) => {
        assert.deepEqual(parseData('TXT', formatData('TXT', { text: value })), { text: value })
        const data = encodeData('TXT', { text: value })
        const framed = Buffer.concat([Buffer.of(data.length >> 8, data.length & 0xff), data])
        assert.deepEqual(decodeData('TXT', framed, 0), { text: value })
      }),
    )
  })
})

suite('changes', () => {
  const listing = (...recordSets: RecordSet[]) => ({ recordSets, others: [{ name: 'mail.test', type: 'MX' }] })
  const alias = (name: string): Change => ({ name, type: 'CNAME', ttl: 60, records: [{ target: 'b.test' }] })

  test('a CNAME conflicts with what is beside it after the change, of whatever type', () => {
    const conflicts = (existing: RecordSet[], ...changes: Change[]) => {
      try {
        checkConflicts(listing(...existing), checkChanges('test', changes))
        return false
      } catch (error) {
        assert.ok(isDnsFault(error, 'conflict'))
        return true
      }
    }
    assert.equal(conflicts([a('a.test', '192.0.2.1')], alias('a.test')), true)
    assert.equal(conflicts([a('a.test', '192.0.2.1')], alias('a.test'), a('a.test')), false)
    assert.equal(conflicts([], alias('mail.test')), true)
    assert.equal(conflicts([], alias('a.test'), a('a.test', '192.0.2.1')), true)
    assert.equal(conflicts([], alias('a.test')), false)
  })

  test('names that only look as if they were in the zone are invalid', () => {
    const bad = [
      'xplay.test',
      'play.test.evil',
      'test',
      '',
      '.',
      'a..play.test',
      '-a.play.test',
      '*.play.test',
      'ä.play.test',
    ]
    for (const name of [...bad, `${'a'.repeat(64)}.play.test`]) {
      assert.throws(
        () => checkChanges('play.test', [a(name, '192.0.2.1')]),
        (error) => isDnsFault(error, 'invalid'),
        name,
      )
    }
    for (const name of ['play.test', 'A.Play.Test.', '_minecraft._tcp.a.play.test']) {
      checkChanges('play.test', [a(name, '192.0.2.1')])
    }
  })
})

suite('withTimeout', () => {
  const hanging = {
    list: (_zone: string, options?: { signal?: AbortSignal }) =>
      new Promise((_, reject) => options?.signal?.addEventListener('abort', () => reject(options.signal?.reason))),
  } as unknown as DnsProvider

  test('turns its own deadline into unreachable and keeps the reason of the caller', async () => {
    await assert.rejects(withTimeout(hanging, 20).list('play.test'), (error) => isDnsFault(error, 'unreachable'))
    const reason = new Error('enough')
    const controller = new AbortController()
    const call = withTimeout(hanging, 60_000).list('play.test', { signal: controller.signal })
    controller.abort(reason)
    await assert.rejects(call, reason)
  })
})
