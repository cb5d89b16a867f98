// The tenant next door, as the test sees it: it is started, told of the attack, stopped, and says what it met.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

export interface VictimSetup {
  url: string
  token: string
  serverId: string
}

/** Of the attack's begin, and of its end. */
export type VictimOrder = 'attacked' | 'stop'

export interface Timing {
  what: string
  ms: number
}

/** A change that was answered, and so has an entry in the activity. */
export interface Change {
  event: string
  requestId: string
}

type Files = [path: string, content: Uint8Array][]

export interface VictimReport {
  before: Timing[]
  during: Timing[]
  /** Refused, lost or wrong, in a sentence each. The victim stops at the first refusal. */
  faults: string[]
  changes: Change[]
  /** What its server must hold now. */
  files: Files
  /** Those it still has, oldest first, with what each must hold. */
  backups: { id: string; files: Files }[]
}

export interface Victim {
  /** Resolves when the victim has ended, also before it is told to. */
  readonly ended: Promise<VictimReport>
  attacked(): void
  stop(): Promise<VictimReport>
}

/** Resolves once the victim has worked for a while in peace. */
export async function startVictim(setup: VictimSetup): Promise<Victim> {
  const worker = new Worker(new URL('./victim-work.ts', import.meta.url), { workerData: setup })
  const order = (message: VictimOrder) => worker.postMessage(message)
  const ended = new Promise<VictimReport>((resolve, reject) => {
    worker.on('message', (message: VictimReport | 'warm') => message !== 'warm' && resolve(message)).on('error', reject)
  })
  await Promise.race([once(worker, 'message'), ended])
  return {
    ended,
    attacked: () => order('attacked'),
    stop() {
      order('stop')
      return ended
    },
  }
}
