import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StartFault } from '../start-fault.ts'
import { planDescriptors } from './descriptors.ts'

const MOST = { connections: 10_000, dnsConnections: 256 }

test('fewer than 80 descriptors are refused, with what to do about it', () => {
  for (const limit of [0, 10, 79])
    assert.throws(
      () => planDescriptors(limit, MOST),
      (error) => error instanceof StartFault && /80/.test(error.message) && /ulimit -n/.test(error.message),
    )
  assert.ok(planDescriptors(80, MOST).connections >= 2)
})

test('what is shared out never exceeds what there is, and never the most of it', () => {
  for (const limit of [80, 100, 1024, 65_536, Number.MAX_SAFE_INTEGER]) {
    const { connections, dnsConnections, transfers, filesAtOnce } = planDescriptors(limit, MOST)
    assert.ok(connections + dnsConnections + transfers + filesAtOnce < limit)
    assert.ok(connections <= MOST.connections && dnsConnections <= MOST.dnsConnections)
  }
})
