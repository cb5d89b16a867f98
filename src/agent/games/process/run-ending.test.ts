// What is left of a run is ended by what the kernel knows, where nothing else tells of it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { until } from '../../../../test/support/until.ts'
import { identify, isAlive, type ProcessIdentity } from '../process-identity.ts'
import { endWithoutSupervisor, killRun } from './run-ending.ts'

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

test('a game that has a user of its own ends with all that the user runs, also without its supervisor', async (context) => {
  if (process.getuid?.() !== 0) return context.skip('only root gives games users of their own')
  const user = 1_900_099_999
  const child = spawn('sleep', ['60'], { uid: user, gid: user, detached: true, stdio: 'ignore' })
  await once(child, 'spawn')
  const left = identityOf(child.pid)
  await endWithoutSupervisor({ runId: 'run_1', supervisor: NOBODY, game: null, cgroups: [], user })
  await until(async () => !isAlive(left))
})
