// A supervisor that waits is used or let go of: none stays that nobody knows of.
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { afterEach, suite, test } from 'node:test'
import { childrenNow } from '../../../../test/support/children.ts'
import { until } from '../../../../test/support/until.ts'
import type { Launch } from '../../../contract/games/launch.ts'
import { cannotRunOut, whileFew } from '../../files/few-descriptors.testing.ts'
import { firstLook } from '../supervisor/first-look.testing.ts'
import { createWaitingSupervisors, type ReadyWith } from './waiting-supervisors.ts'

const FOLDER = tmpdir()
const LAUNCH = {} as Launch

function readyWith() {
  let made = 0
  const makeGroups = () => {
    made++
    return { folders: [], controllers: new Set<never>() }
  }
  const ready: ReadyWith = { gameFolder: FOLDER, makeGroups, ownership: null }
  return { ready, countMade: () => made }
}

/** As of a process that has ended, while its parent has not asked how. */
const ended = (pid: number) => () => `${pid} (node) Z 1`

suite('a supervisor that waits', () => {
  afterEach(async () => {
    for (const pid of childrenNow()) process.kill(pid, 'SIGKILL')
    await until(async () => childrenNow().length === 0)
  })

  test('is kept for the next start where descriptors have run out', { skip: cannotRunOut }, async () => {
    const waiting = createWaitingSupervisors({ keepsSpare: true })
    waiting.loadSpare(FOLDER)
    const spare = childrenNow()
    assert.equal(spare.length, 1)
    const { error } = await whileFew('at once', 0, () => waiting.loadSpare(FOLDER))
    assert.ifError(error)
    waiting.loadSpare(FOLDER)
    assert.deepEqual(childrenNow(), spare)
  })

  test('is that of the start it was reserved for where descriptors have run out', { skip: cannotRunOut }, async () => {
    const waiting = createWaitingSupervisors({ keepsSpare: false })
    const { ready, countMade } = readyWith()
    waiting.reserve(LAUNCH, ready)
    const reserved = childrenNow()
    const { error } = await whileFew('at once', 0, () => waiting.take(LAUNCH, ready))
    assert.ifError(error)
    assert.equal(countMade(), 1, 'its groups are kept too')
    assert.deepEqual(childrenNow(), reserved)
  })

  test('is let go of where it passes for one that has ended', async () => {
    const waiting = createWaitingSupervisors({ keepsSpare: true })
    waiting.loadSpare(FOLDER)
    const [spare] = childrenNow() as [number]
    using _spareLook = firstLook(spare, ended(spare))
    const { ready } = readyWith()
    waiting.reserve(LAUNCH, ready)
    const [reserved] = childrenNow().filter((pid) => pid !== spare) as [number]
    using _reservedLook = firstLook(reserved, ended(reserved))
    using taken = waiting.take(LAUNCH, ready).supervisor
    assert.ok(taken.mayBeAlive())
    await until(async () => childrenNow().length === 1)
    assert.ok(![spare, reserved].includes(childrenNow()[0] as number))
  })

  test('is let go of where it cannot be made ready', async () => {
    const waiting = createWaitingSupervisors({ keepsSpare: false })
    const makeGroups = () => {
      throw new Error('no groups')
    }
    assert.throws(() => waiting.reserve(LAUNCH, { ...readyWith().ready, makeGroups }), /no groups/)
    await until(async () => childrenNow().length === 0)
  })
})
