// The least program in Node, as a tool of the benchmark: what is left to gain where JavaScript does the work.
import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  discard,
  type Line,
  type Place,
  record,
  sizeOf,
  type Tool,
  UNCHANGED_RUNS,
  type Warmth,
} from '../backup-peers.ts'
import type { Answered, Asked } from './node/main.ts'

const MAIN = fileURLToPath(new URL('./node/main.ts', import.meta.url))

export const nodeFloorName = (warmth: Warmth) => `least program in Node, ${warmth}`

/** What it writes beside what it reads, and beside the blocks that changed. */
export interface Shares {
  first(treeBytes: number): number
  changed(): number
}

export function createNodeFloor(warmth: Warmth, shares: Shares): Tool {
  return {
    name: nodeFloorName(warmth),
    async round(place, times) {
      using program = openProgram(join(place.base, `node-${warmth}`), warmth)
      for (const [line, step] of Object.entries(STEPS)) {
        if (warmth === 'warm') await step(program, place, shares)
        for (const { seconds } of await step(program, place, shares)) record(times, line as Line, seconds)
      }
    },
  }
}

export const FORMAT_FLOOR = 'our format alone'

/** What our format asks of every byte of a first backup. */
export const formatFloor: Tool = {
  name: FORMAT_FLOOR,
  async round({ base, tree }, times) {
    using program = openProgram(join(base, 'format'), 'warm')
    await program.ask({ step: 'format', tree, store: program.folder() })
    record(times, 'first', (await program.ask({ step: 'format', tree, store: program.folder() })).seconds)
  },
}

const STEPS: Partial<Record<Line, (program: Program, place: Place, shares: Shares) => Promise<Answered[]>>> = {
  async first({ ask, folder }, { tree }, shares) {
    return [await ask({ step: 'first', tree, store: folder(), share: shares.first(sizeOf(tree)) })]
  },
  async unchanged({ ask }, { tree }) {
    const answers: Answered[] = []
    for (let count = 0; count < UNCHANGED_RUNS; count++) answers.push(await ask({ step: 'walk', tree }))
    return answers
  },
  async changed({ ask, folder }, { tree, change }, shares) {
    const prints = join(folder(), 'prints')
    await ask({ step: 'prints', tree, prints })
    change(tree)
    return [await ask({ step: 'changed', tree, prints, store: folder(), share: shares.changed() })]
  },
  async restore({ ask, folder }, { tree }) {
    const pack = join(folder(), 'pack')
    await ask({ step: 'pack', tree, pack })
    return [await ask({ step: 'restore', pack, target: folder() })]
  },
}

interface Program extends Disposable {
  ask(asked: Asked): Promise<Answered>
  /** A new one, with nothing left to write for anybody. */
  folder(): string
}

function openProgram(base: string, warmth: Warmth): Program {
  mkdirSync(base)
  let folders = 0
  let running: NodeProgram | undefined
  const stop = () => {
    running?.stop()
    running = undefined
  }
  return {
    async ask(asked) {
      running ??= startNodeProgram()
      const answered = await running.ask(asked)
      if (warmth === 'cold') stop()
      return answered
    },
    folder() {
      const path = join(base, String(++folders))
      mkdirSync(path)
      execFileSync('sync')
      return path
    },
    [Symbol.dispose]() {
      stop()
      discard(base)
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
  const heard = async () => (await Promise.race([once(child, 'message'), ended]))[0]
  // Its threads are there by then.
  const ready = heard()
  ready.catch(() => {})
  return {
    async ask(asked) {
      await ready
      const answer = heard()
      child.send(asked)
      return (await answer) as Answered
    },
    stop: () => child.disconnect(),
  }
}
