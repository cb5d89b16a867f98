// What is left of a run is ended by what the kernel knows, where nothing else tells of it.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mock, test } from 'node:test'
import { until } from '../../../../test/support/until.ts'
import { identify, isAlive, type ProcessIdentity, signalGroup } from '../process-identity.ts'
import { firstLook, noDescriptor } from '../supervisor/first-look.testing.ts'
import { endForgotten, endWithoutSupervisor, killRun } from './run-ending.ts'

const NOBODY: ProcessIdentity = { pid: 0, startTime: '', bootId: '' }
const identityOf = (pid: number | undefined) => identify(pid ?? 0) as ProcessIdentity

test('a kill ends a game that the disk did not take the name of, however deep below its supervisor it is', async () => {
  // As bubblewrap starts a game: in a session of its own, and not as its own child.
  const line = 'setsid sh -c "setsid sleep 60 & echo \\$!; wait" & wait'
  const child = spawn('/bin/sh', ['-c', line], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  const [said] = await once(child.stdout, 'data')
  const game = identityOf(Number(String(said)))
  await killRun(() => ({ runId: 'run_1', supervisor: identityOf(child.pid), game: null, cgroups: [] }))
  await until(async () => !isAlive(game))
})

test('a kill spares those below another that has the number of a supervisor, also where no descriptor is left to see that', async (t) => {
  const child = spawn('/bin/sh', ['-c', 'cat; echo killed'], { detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
  const other = identityOf(child.pid)
  t.after(() => signalGroup(other, 'SIGKILL'))
  const hear = async (line: string) => {
    child.stdin.write(line)
    const [said] = await once(child.stdout, 'data')
    assert.equal(String(said), line)
  }
  await hear('up\n')
  using look = firstLook(other.pid, noDescriptor)
  await killRun(() => ({ runId: 'run_1', supervisor: { ...other, startTime: '1' }, game: null, cgroups: [] }))
  assert.ok(look.count() > 1)
  await hear('still there\n')
})

test('a game without a supervisor is neither killed nor said to have ended where no descriptor is left to look with', async (t) => {
  const script = 'trap "echo saved; exit" TERM; echo up; while :; do sleep 0.1; done'
  const child = spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  const game = identityOf(child.pid)
  t.after(() => signalGroup(game, 'SIGKILL'))
  await once(child.stdout, 'data')
  const record = { runId: 'run_1', supervisor: NOBODY, game, cgroups: [] }
  using _look = firstLook(game.pid, noDescriptor)
  await assert.rejects(endWithoutSupervisor(record), { code: 'EMFILE' })
  assert.ok(isAlive(game))
  const [[said]] = await Promise.all([once(child.stdout, 'data'), endWithoutSupervisor(record)])
  assert.equal(String(said), 'saved\n')
  assert.ok(!isAlive(game))
})

test('one that ends by itself just before it would have been killed is no failure', async () => {
  const child = spawn('/bin/sh', ['-c', 'sleep 60 & echo; wait'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  await once(child.stdout, 'data')
  const { kill } = process
  const killing = mock.method(process, 'kill', (pid: number, signal: NodeJS.Signals) => {
    kill(pid, 'SIGKILL')
    if (pid > 0) throw Object.assign(new Error(`kill ESRCH ${signal}`), { code: 'ESRCH' })
    return true
  })
  try {
    const supervisor = identityOf(child.pid)
    await endForgotten({ runId: 'run_1', supervisor, game: null, cgroups: [] })
    assert.ok(killing.mock.calls.some(({ arguments: [pid] }) => pid > 0 && pid !== supervisor.pid))
  } finally {
    killing.mock.restore()
  }
})

test('a game that has a user of its own ends with all that the user runs, also without its supervisor', async (context) => {
  if (process.getuid?.() !== 0) return context.skip('only root gives games users of their own')
  const user = 1_900_099_999
  const child = spawn('sleep', ['60'], { uid: user, gid: user, detached: true, stdio: 'ignore' })
  await once(child, 'spawn')
  const left = identityOf(child.pid)
  await endWithoutSupervisor({ runId: 'run_1', supervisor: NOBODY, game: null, cgroups: [], user })
  await until(async () => !isAlive(left))
})
