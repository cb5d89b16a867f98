// One round: a service, what we believe of it, and what was promised. Themes do things to it; the checker then compares.
import { join } from 'node:path'
import type { Engine } from '../../../src/control/db/database.ts'
import { temporaryDirectory } from '../../support/daemons.ts'
import { type Call, createHistory, expectOk, type History, type Outcome } from './history.ts'
import { createKeeper, type Keeper } from './keeper.ts'
import { emptyState, type Plot, type ServerModel } from './model.ts'
import { createRandom, type Random } from './random.ts'

/** So many entries with this event must a request have. */
export interface Expectation {
  op: string
  event: string
  least: number
  most: number
  /** What was asked for and how it was answered, for the report. */
  because: string
}

export interface Subdomains {
  /** Created or deleted with an answer: whether it is there. `unknown` where nobody heard the answer. */
  known: Map<string, { serverId: string; id: string | null; isThere: boolean | 'unknown' }>
}

export interface Round {
  readonly seed: number
  readonly engine: Engine
  readonly random: Random
  readonly keeper: Keeper
  readonly history: History
  readonly servers: ServerModel[]
  readonly expectations: Expectation[]
  readonly subdomains: Subdomains
  /** What was found wrong, in a sentence each. */
  readonly violations: Set<string>
  /**
   * Error numbers or refused statements are under way: an answer may be `internal`, a backup or a job may fail. A disk that
   * fails may do so after the change: then it is there although it was refused, and is recorded.
   */
  excuses: { internalErrors: boolean; failedWork: boolean; failingDisk?: boolean; freesTrash?: boolean }
  /** What made room for something else, where that is allowed: each must be told of by `file.trash_freed`. */
  readonly leftTrash: { serverId: string; path: string }[]
  violation(sentence: string): void
  expect(op: string, event: string, count: number | [number, number], because: string): void
  newLabel(): string
  newServer(limits?: object, plots?: number): Promise<ServerModel>
  dispose(): Promise<void>
}

export async function createRound(
  seed: number,
  engine: Engine,
  {
    settings = {},
    prepare = () => {},
    isKept = false,
  }: { settings?: Record<string, string>; prepare?: (keeper: Keeper) => void; isKept?: boolean },
): Promise<Round> {
  const keeper = await createKeeper(engine, settings)
  const notes = temporaryDirectory('history-notes')
  const violations = new Set<string>()
  const violation = (sentence: string) => {
    if (!violations.has(sentence)) history.note({ violation: sentence })
    violations.add(sentence)
  }
  const history = createHistory(join(notes.path, 'history.ndjson'), () => keeper, judgeAnswer)
  let label = 0

  function judgeAnswer(call: Call, outcome: Outcome): void {
    if (outcome.kind !== 'refused' || outcome.status !== 500 || round.excuses.internalErrors) return
    violation(`${call.method} ${call.target.split('?', 1)[0]?.slice(0, 80)} was answered with 500 (${outcome.op})`)
  }

  const round: Round = {
    seed,
    engine,
    random: createRandom(seed),
    keeper,
    history,
    servers: [],
    expectations: [],
    subdomains: { known: new Map() },
    leftTrash: [],
    violations,
    excuses: { internalErrors: false, failedWork: false },
    violation,
    expect(op, event, count, because) {
      const [least, most] = typeof count === 'number' ? [count, count] : count
      round.expectations.push({ op, event, least, most, because })
    },
    newLabel: () => `w${++label}-`,
    async newServer(limits, plots = 0) {
      const name = `Castle ${round.servers.length + 1}`
      const made = expectOk(
        await history.send({ method: 'POST', target: '/servers', json: { name, ...(limits ? { limits } : {}) } }),
      )
      round.expect(made.op, 'server.created', 1, 'a server was created')
      const server: ServerModel = {
        id: made.body.id,
        name,
        quotaBytes: made.body.limits.diskBytes,
        plots: [],
        backups: new Map(),
        isDeleted: false,
      }
      round.servers.push(server)
      for (let index = 0; index < plots; index++) server.plots.push(await newPlot(round, server, `p${index}`))
      return server
    },
    async dispose() {
      await keeper.dispose()
      history.close()
      // Whoever looks for the reason of a fault needs it.
      if (violations.size === 0 && !isKept) notes.remove()
    },
  }
  prepare(keeper)
  await keeper.start()
  return round
}

async function newPlot({ history, expect }: Round, server: ServerModel, name: string): Promise<Plot> {
  const made = expectOk(await history.send({ method: 'POST', target: `/files/${server.id}/folder`, json: { name } }))
  expect(made.op, 'file.folder_created', 1, `the folder /${name} was made`)
  return { server, path: `/${name}`, state: emptyState, doubt: null }
}
