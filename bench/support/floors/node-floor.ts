// The least program in Node, as a tool of the benchmark: what is left to gain where JavaScript does the work.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { discard, heat, record, type Tool, UNCHANGED_RUNS } from '../backup-peers.ts'
import type { Answered, Asked } from './node/main.ts'

const MAIN = fileURLToPath(new URL('./node/main.ts', import.meta.url))

export const NODE_FLOOR = 'least program in Node'

/** What it writes beside what it reads, and beside the blocks that changed. */
export interface Shares {
  first(treeBytes: number): number
  changed(): number
}

/** Every step is done once before the one that counts: nothing is left to compile. */
export function createNodeFloor(shares: Shares): Tool {
  return {
    name: NODE_FLOOR,
    async round({ base, tree, change }, times) {
      const program = startNodeProgram()
      let stores = 0
      const store = () => {
        const path = join(base, `node-${++stores}`)
        mkdirSync(path)
        heat(path)
        return path
      }
      const first = (share: number) => program.ask({ step: 'first', tree, store: store(), share })
      const changed = async () => {
        await program.ask({ step: 'prints', tree })
        change(tree)
        return program.ask({ step: 'changed', tree, store: store(), share: shares.changed() })
      }
      try {
        const { bytes } = await first(0)
        record(times, 'first', (await first(shares.first(bytes))).seconds)
        await program.ask({ step: 'walk', tree })
        for (let count = 0; count < UNCHANGED_RUNS; count++)
          record(times, 'unchanged', (await program.ask({ step: 'walk', tree })).seconds)
        await changed()
        record(times, 'changed', (await changed()).seconds)
      } finally {
        program.stop()
        for (let made = 1; made <= stores; made++) discard(join(base, `node-${made}`))
      }
    },
  }
}

export interface NodeProgram {
  ask(asked: Asked): Promise<Answered>
  stop(): void
}

export function startNodeProgram(): NodeProgram {
  const child: ChildProcess = fork(MAIN, { env: { ...process.env, NODE_TEST_CONTEXT: '' } })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the least program in Node ended with ${code}`)
  })
  ended.catch(() => {})
  return {
    async ask(asked) {
      const answer = once(child, 'message')
      child.send(asked)
      const [answered] = await Promise.race([answer, ended])
      return answered as Answered
    },
    stop: () => child.disconnect(),
  }
}
