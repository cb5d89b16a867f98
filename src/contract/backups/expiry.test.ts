import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { RetentionPolicy } from './backup-plans.ts'
import { type Candidate, planExpiry } from './expiry.ts'

const NONE: RetentionPolicy = { keepLast: null, keepHourly: null, keepDaily: null, keepWeekly: null, keepMonthly: null }
const at = (time: string, isLocked = false): Candidate => ({ id: time, createdAt: Date.parse(`${time}Z`), isLocked })
const ids = (backups: readonly Candidate[]) => backups.map(({ id }) => id)

test('the newest of each period is kept, as many periods back as the rule says', () => {
  const backups = [
    '2026-11-15T23:00',
    '2026-11-15T01:00',
    '2026-11-14T12:00',
    '2026-11-09T12:00',
    '2026-10-31T12:00',
  ].map((time) => at(time))
  const [newest, sameDay, sunday, monday, october] = ids(backups)
  assert.deepEqual(ids(planExpiry(backups, { ...NONE, keepDaily: 2 })), [sameDay, monday, october])
  assert.deepEqual(ids(planExpiry(backups, { ...NONE, keepWeekly: 1 })), [sameDay, sunday, monday, october])
  assert.deepEqual(ids(planExpiry(backups, { ...NONE, keepMonthly: 2 })), [sameDay, sunday, monday])
  assert.deepEqual(ids(planExpiry(backups, { ...NONE, keepHourly: 2 })), [sunday, monday, october])
  assert.deepEqual(ids(planExpiry(backups, { ...NONE, keepLast: 1, keepMonthly: 12 })), [sameDay, sunday, monday])
  assert.ok(newest)
})

test('weeks begin on Monday', () => {
  const backups = ['2026-11-16T00:00', '2026-11-15T23:59', '2026-11-09T00:00', '2026-11-08T23:59'].map((time) =>
    at(time),
  )
  assert.deepEqual(ids(planExpiry(backups, { ...NONE, keepWeekly: 4 })), ['2026-11-09T00:00'])
})

const rule = fc.option(fc.integer({ min: 1, max: 8 }), { nil: null })
const policies = fc.record({ keepLast: rule, keepHourly: rule, keepDaily: rule, keepWeekly: rule, keepMonthly: rule })
const candidates = fc
  .array(fc.record({ createdAt: fc.integer({ min: 1.7e12, max: 1.71e12 }), isLocked: fc.boolean() }), { maxLength: 60 })
  .map((list) => list.map((item, index) => ({ ...item, id: `bkp_${String(index).padStart(3, '0')}` })))

test('no rule expires nothing; locked ones and the newest never expire; doing it twice is doing it once', () => {
  fc.assert(
    fc.property(candidates, policies, (backups, policy) => {
      const expired = planExpiry(backups, policy)
      const gone = new Set(ids(expired))
      if (Object.values(policy).every((value) => value === null)) assert.equal(gone.size, 0)
      assert.ok(expired.every(({ isLocked }) => !isLocked))
      const newest = backups.toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))[0]
      if (newest) assert.ok(!gone.has(newest.id))
      const unlocked = backups.map((backup) => ({ ...backup, isLocked: false }))
      const once = planExpiry(unlocked, policy)
      const kept = unlocked.filter((backup) => !once.includes(backup))
      assert.deepEqual(planExpiry(kept, policy), [])
      const most = Object.values(policy).reduce<number>((sum, value) => sum + (value ?? 0), 0)
      if (most > 0) assert.ok(kept.length <= most)
    }),
  )
})

test('a longer rule never keeps less', () => {
  fc.assert(
    fc.property(candidates, policies, (backups, policy) => {
      const before = new Set(ids(planExpiry(backups, policy)))
      const longer = { ...policy, keepLast: (policy.keepLast ?? 0) + 1, keepDaily: (policy.keepDaily ?? 0) + 1 }
      if (before.size > 0) for (const { id } of planExpiry(backups, longer)) assert.ok(before.has(id))
    }),
  )
})
