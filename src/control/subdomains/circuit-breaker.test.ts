import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DnsProvider, DnsProviderError, isDnsFault } from '../../dns/provider.ts'
import { withCircuitBreaker } from './circuit-breaker.ts'

test('after no answer the others fail at once, one asks again, and its success opens the way', async () => {
  let now = 1000
  let calls = 0
  let answer: () => Promise<never> | Promise<{ recordSets: []; others: [] }> = async () => {
    throw new DnsProviderError('unreachable', 'No answer.')
  }
  const provider = {
    list: () => {
      calls++
      return answer()
    },
  } as unknown as DnsProvider
  const resting = withCircuitBreaker(provider, () => now)
  const unreachable = (error: unknown) => isDnsFault(error, 'unreachable')
  await assert.rejects(resting.list('a.test'), unreachable)
  await assert.rejects(resting.list('a.test'), unreachable)
  assert.equal(calls, 1)
  now += 2000
  const { promise, resolve } = Promise.withResolvers<{ recordSets: []; others: [] }>()
  answer = () => promise
  const probe = resting.list('a.test')
  await assert.rejects(resting.list('a.test'), unreachable)
  assert.equal(calls, 2)
  resolve({ recordSets: [], others: [] })
  await probe
  await resting.list('a.test')
  assert.equal(calls, 3)
})

test('who insists asks in any case, and an answer of any kind ends the rest', async () => {
  let fault: 'unreachable' | 'refused' = 'unreachable'
  let calls = 0
  const provider = {
    list: async () => {
      calls++
      throw new DnsProviderError(fault, 'No.')
    },
  } as unknown as DnsProvider
  const resting = withCircuitBreaker(provider, () => 1000)
  await assert.rejects(resting.list('a.test'))
  fault = 'refused'
  await assert.rejects(resting.unguarded.list('a.test'), (error) => isDnsFault(error, 'refused'))
  await assert.rejects(resting.list('a.test'), (error) => isDnsFault(error, 'refused'))
  assert.equal(calls, 3)
})
