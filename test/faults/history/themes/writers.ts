// Clients that write at once, with and without kills: what is answered is recorded once, what is not is whole or not there.
import { setTimeout as delay } from 'node:timers/promises'
import { startAgain } from '../checker/index.ts'
import { watchQuotas } from '../checker/quotas.ts'
import { workOn } from '../clients.ts'
import type { Round } from '../round.ts'
import type { StepName } from '../steps.ts'
import type { Theme } from './theme.ts'

const CLIENTS = 5
const MOST_STEPS = 40
const LONGEST_FREEZE_MS = 300
const MINUTE_MS = 60_000

export const tinyWrites: Theme = {
  about: 'four clients write tiny files and delete them, as fast as they can',
  aimedAt: ['6'],
  async run(round) {
    const { plots } = await round.newServer(undefined, 4)
    await workOn(round, plots, { steps: 120, weights: { write: 4, remove: 1 }, maxBytes: 50 })
  },
}

export const killedWriters: Theme = {
  about: 'clients do everything to files until the service is killed, three times over',
  aimedAt: ['6', '7'],
  run: (round) => killWhileWorking(round, {}),
}

export const killedFolders: Theme = {
  about: 'clients make, move, copy and delete until the service is killed between disk and database',
  aimedAt: ['7'],
  async run(round) {
    const weights = { makeFolder: 3, remove: 2, move: 2, copy: 2, restoreTrash: 2, write: 1 }
    await killWhileWorking(round, weights, [
      'fsync agent/files/sandbox/directory.ts:fsyncDirectory',
      '(mkdir|rename|link|unlink)(Sync)? agent/files',
      'insert into "activity',
    ])
  },
}

export const killedUploads: Theme = {
  about: 'uploads in pieces while the service is killed',
  aimedAt: ['6'],
  run: (round) =>
    killWhileWorking(round, { tus: 4, form: 1 }, [
      'agent/journal',
      '(open|write|rename|unlink|fsync|link).* agent/files/uploads/partial',
      '(fsync|unlink|link|rename).* agent/files',
      'insert into "activity',
    ]),
}

/** `at`: calls and statements, in the middle of one of which the process ends; anywhere where none are named. */
async function killWhileWorking(
  round: Round,
  weights: Partial<Record<StepName, number>>,
  at: readonly string[] = ['agent/', 'insert into'],
): Promise<void> {
  const { keeper, random } = round
  const { plots } = await round.newServer(undefined, CLIENTS)
  for (let turn = 0; turn < 3; turn++) {
    const match = random.pick(at)
    const fault = { kill: random.pick(['before', 'after'] as const) }
    const rule = { match, skip: random.int(60), times: 1, fault }
    round.history.note({ chaos: 'killed at', rule })
    await keeper.set(match.startsWith('insert') ? { statements: [rule] } : { files: [rule] })
    const hasWeights = Object.keys(weights).length > 0
    await workOn(round, plots, { steps: MOST_STEPS, maxBytes: 5000, ...(hasWeights ? { weights } : {}) })
    await keeper.kill()
    await keeper.set({ files: [], statements: [] })
    await startAgain(round)
  }
}

export const clockSteps: Theme = {
  about: 'the clock steps back and forth, over restarts too',
  aimedAt: ['6'],
  async run(round) {
    const { keeper, random } = round
    const { plots } = await round.newServer(undefined, 3)
    for (let turn = 0; turn < 3; turn++) {
      const clockOffsetMs = (random.int(120) - 60) * MINUTE_MS
      round.history.note({ chaos: 'clock', clockOffsetMs })
      await keeper.set({ clockOffsetMs })
      await workOn(round, plots, { steps: 12 })
      if (random.chance(0.3)) continue
      await keeper.kill()
      await keeper.set({ clockOffsetMs: clockOffsetMs - random.int(60) * MINUTE_MS })
      await startAgain(round)
    }
  },
}

export const frozen: Theme = {
  about: 'the process stands still in the middle of everything and goes on',
  aimedAt: [],
  async run(round) {
    const { keeper, random } = round
    const { plots } = await round.newServer({ diskBytes: 100_000_000 }, 4)
    await using _watched = watchQuotas(round)
    let isOver = false
    const working = workOn(round, plots, { steps: 30 }).finally(() => {
      isOver = true
    })
    for (let turn = 0; turn < 3; turn++) {
      const answered = round.history.length + random.int(20)
      while (round.history.length < answered && !isOver) await delay(1)
      keeper.freeze()
      await delay(random.int(LONGEST_FREEZE_MS))
      keeper.thaw()
    }
    await working
  },
}

export const tightQuota: Theme = {
  about: 'clients write into a quota that is too small for them together: what the trash loses for it is told',
  aimedAt: ['1', '11'],
  async run(round) {
    const { plots } = await round.newServer({ diskBytes: 400_000 }, 4)
    await using _watched = watchQuotas(round)
    // The trash makes room for what really arrives.
    round.excuses.freesTrash = true
    await workOn(round, plots, { steps: 25, maxBytes: 100_000, weights: { write: 3, form: 2, copy: 2, tus: 1 } })
  },
}
