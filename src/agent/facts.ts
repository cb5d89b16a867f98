// What happened here without control asking, one small file each, durable before anybody is told of success.
import { mkdirSync } from 'node:fs'
import { open, readdir, readFile, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentFact, AgentFacts } from '../contract/agent.ts'
import { ignoreAbsent } from '../kit/errno.ts'
import { newId } from '../kit/ids.ts'

export interface FactLog extends AgentFacts {
  /** Resolves once the fact is on disk. */
  add(fact: Omit<AgentFact, 'id' | 'at'>): Promise<void>
  /** Answers those who wait. */
  stop(): void
}

const DRAFT = '.new'

export function createFacts(dir: string, clock: { now(): number }): FactLog {
  mkdirSync(dir, { recursive: true })
  const waiting = new Set<() => void>()

  const wakeAll = () => {
    for (const wake of waiting) wake()
  }
  const ids = async () => (await readdir(dir)).filter((name) => !name.endsWith(DRAFT)).sort()

  return {
    async add(fact) {
      const id = newId('act', clock.now())
      const file = join(dir, id)
      const draft = await open(file + DRAFT, 'w')
      try {
        await draft.writeFile(JSON.stringify({ ...fact, id, at: clock.now() }))
        await draft.sync()
      } finally {
        await draft.close()
      }
      await rename(file + DRAFT, file)
      await syncDirectory(dir)
      wakeAll()
    },
    stop: wakeAll,

    async read({ limit, waitMs }) {
      const { promise: added, resolve: wake } = Promise.withResolvers<void>()
      waiting.add(wake)
      try {
        const found = await ids()
        if (found.length === 0 && waitMs > 0) {
          const timer = setTimeout(wake, waitMs)
          await added
          clearTimeout(timer)
        }
        const names = (found.length > 0 ? found : await ids()).slice(0, limit)
        return await Promise.all(
          names.map(async (name) => JSON.parse(await readFile(join(dir, name), 'utf8')) as AgentFact),
        )
      } finally {
        waiting.delete(wake)
      }
    },

    async forget({ upTo }) {
      for (const name of await ids()) {
        if (name <= upTo) await unlink(join(dir, name)).catch(ignoreAbsent)
      }
    },
  }
}

async function syncDirectory(dir: string): Promise<void> {
  const handle = await open(dir, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
