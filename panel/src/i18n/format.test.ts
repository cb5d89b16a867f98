import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatBytes, relativeTime } from './format.ts'

test('times are told from the reader, in their language', () => {
  const now = new Date('2026-11-15T12:00:00Z')
  const ago = (seconds: number, locale = 'en') => relativeTime(new Date(now.getTime() - seconds * 1000), now, locale)
  assert.equal(ago(10), 'now')
  assert.equal(ago(50), '1 minute ago')
  assert.equal(ago(59 * 60), '59 minutes ago')
  assert.equal(ago(26 * 3600), 'yesterday')
  assert.equal(ago(3 * 604_800, 'de'), 'vor 3 Wochen')
  assert.equal(ago(-7200), 'in 2 hours')
})

test('sizes have at most four digits', () => {
  assert.equal(formatBytes(0, 'en'), '0 B')
  assert.equal(formatBytes(1023, 'en'), '1,023 B')
  assert.equal(formatBytes(1536, 'de'), '1,5 KiB')
  assert.equal(formatBytes(5_368_709_120, 'en'), '5 GiB')
})
