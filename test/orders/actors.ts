// Who does what: everything that an operation causes, its jobs and what its agent does included, runs in its actor's
// asynchronous context. At each await point the actor can be held, and with it everything else that it has under way.
import { AsyncLocalStorage } from 'node:async_hooks'

const storage = new AsyncLocalStorage<Actor>()

export const currentActor = (): Actor | undefined => storage.getStore()

const actors = new Map<string, Actor>()
let actorCount = 0

/** The header by which a request over a socket, which no context crosses, says whose it is. */
export const ACTOR_HEADER = 'x-orders-actor'

export function asActor<T>(id: string | undefined, work: () => T): T {
  const actor = id === undefined ? undefined : actors.get(id)
  return actor ? storage.run(actor, work) : work()
}

/** The point at which an actor stops until it is let go: the nth of a kind, or of a name. */
export interface Hold {
  kind: string
  nth: number
}

const PORTS = 'ports'

/** What the agent does on its disk runs beside the waiting for it: the two are counted apart, each disk call by its name. */
export const kindOf = (label: string) => (label.startsWith('disk') ? label : PORTS)

/** Where to hold for each of these points. */
export function holdsOf(points: readonly string[]): Hold[] {
  const counts = new Map<string, number>()
  return points.map((label) => {
    const kind = kindOf(label)
    const nth = counts.get(kind) ?? 0
    counts.set(kind, nth + 1)
    return { kind, nth }
  })
}

let lastStepOfAnyAt = performance.now()

/** For how long nobody has taken a step. */
export const stillMs = () => performance.now() - lastStepOfAnyAt

export class Actor {
  readonly name: string
  readonly id = `actor-${++actorCount}`
  /** The await points so far, in order, in words. */
  readonly points: string[] = []
  /** Connections to PostgreSQL that it has now, by the id of their backend. */
  readonly backends = new Set<number>()
  /** Set while it waits for SQLite's only connection. */
  waitsFor: Actor | 'others' | undefined
  /** Statements and calls of the file system that have begun and not ended. */
  underWay = 0
  /** Calls of the agent that have not ended, within which it may wait for another's. */
  asking = 0
  lastStepAt = performance.now()
  isHeld = false
  /** Whether the agent's calls of the file system are points too. */
  readonly stopsAtDisk: boolean
  readonly held: Promise<void>
  #hold: Hold | undefined
  /** How often it came by each kind of point: those at the ports are one kind, since some get their name only later. */
  #counts = new Map<string, number>()
  #tellHeld: () => void
  #gate = Promise.withResolvers<void>()
  #isFree = false

  constructor(name: string, { hold, stopsAtDisk = false }: { hold?: Hold; stopsAtDisk?: boolean } = {}) {
    this.name = name
    this.#hold = hold
    this.stopsAtDisk = stopsAtDisk
    const { promise, resolve } = Promise.withResolvers<void>()
    this.held = promise
    this.#tellHeld = resolve
    actors.set(this.id, this)
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    return storage.run(this, work)
  }

  async arrive(label: string): Promise<void> {
    this.points.push(label)
    this.lastStepAt = lastStepOfAnyAt = performance.now()
    if (this.#isFree) return
    if (this.#isToStop(label)) this.hold()
    if (this.isHeld) await this.#gate.promise
  }

  #isToStop(label: string): boolean {
    for (const kind of [kindOf(label), label]) {
      const nth = this.#counts.get(kind) ?? 0
      this.#counts.set(kind, nth + 1)
      if (kind === this.#hold?.kind) return nth === this.#hold.nth
      if (kind === label) break
    }
    return false
  }

  /** A point is passed before it is known what comes next. */
  describePoint(label: string, index: number): void {
    this.points[index] = label
  }

  /** At this point, or else at its next. */
  hold(): void {
    this.isHeld = true
    this.#tellHeld()
  }

  /** Lets it go, for good. */
  release(): void {
    this.#isFree = true
    this.isHeld = false
    this.lastStepAt = performance.now()
    this.#gate.resolve()
    actors.delete(this.id)
  }
}

/** An await point: passed at once by whoever is nobody's actor. */
export function arrive(label: string): Promise<void> | undefined {
  return storage.getStore()?.arrive(label)
}

/** A step between two points, so that it is known whether its actor is at work or waits. */
export async function step<T>(kind: 'underWay' | 'asking', work: () => Promise<T>): Promise<T> {
  const actor = storage.getStore()
  if (!actor) return work()
  actor[kind]++
  try {
    return await work()
  } finally {
    actor[kind]--
    actor.lastStepAt = lastStepOfAnyAt = performance.now()
  }
}
