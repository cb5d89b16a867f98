// One of everything that touches the disk, always in the same order: so that each call it makes to the file system can be
// made to fail once.
import { deleteBackup, finishRestore, isUnfinished, makeBackup, restore } from './actions.ts'
import { jobEnd } from './checker/work.ts'
import type { Plot, ServerModel } from './model.ts'
import { perform } from './perform.ts'
import type { Random } from './random.ts'
import type { Round } from './round.ts'
import { STEPS, type StepName } from './steps.ts'

const ORDER: readonly StepName[] = [
  ...(['write', 'write', 'makeFolder', 'write', 'copy', 'move', 'remove', 'restoreTrash'] as const),
  ...(['form', 'tus', 'write', 'copy', 'remove', 'move', 'remove', 'restoreTrash'] as const),
]

export async function playScenario(round: Round, server: ServerModel): Promise<void> {
  const random = round.random.fork('scenario')
  const [plot] = server.plots
  if (!plot) throw new Error('the scenario needs a plot')
  await play(round, plot, random, ORDER)
  const backup = await makeBackup(round, server)
  await play(round, plot, random, ['write', 'remove', 'write'])
  if (backup.trees) {
    const restored = await restore(round, server, backup, { safetyBackup: false })
    if (isUnfinished(restored)) await finishRestore(round, server, backup, random.pick(['forward', 'back']))
  }
  await work(round, server, 'pack', { files: [plot.path.slice(1)], target: '/packed.tar' })
  await work(round, server, 'unpack', { path: '/packed.tar', directory: '/unpacked', overwrite: true })
  await deleteBackup(round, server, backup)
}

async function play(round: Round, plot: Plot, random: Random, names: readonly StepName[]): Promise<void> {
  for (const name of names) {
    const step = STEPS[name]({ plot, random, newLabel: round.newLabel, maxBytes: 10_000 })
    if (step) await perform(round, plot, step)
  }
}

async function work(round: Round, server: ServerModel, kind: string, json: object): Promise<void> {
  const asked = await round.history.send({ method: 'POST', target: `/files/${server.id}/${kind}`, json })
  if (asked.kind === 'ok') await jobEnd(round, server.id, asked.body.id)
}
