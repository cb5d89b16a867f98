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

export class Actor {
  readonly name: string
  readonly id = `actor-${++actorCount}`
  /** The await points so far, in order, in words. */
  readonly points: string[] = []
  /** Connections to PostgreSQL that it has now, by the id of their backend. */
  readonly backends = new Set<number>()
  /** Set while it waits for SQLite's only connection. */
  waitsFor: Actor | 'others' | undefined
  /** Steps that have begun and not ended. */
  underWay = 0
  lastStepAt = performance.now()
  isHeld = false
  /** Whether the agent's calls of the file system are points too. */
  readonly stopsAtDisk: boolean
  readonly held: Promise<void>
  #holdAt: number
  #holdBefore: string
  #tellHeld: () => void
  #gate = Promise.withResolvers<void>()
  #isFree = false

  /** It stops at the point with the index `holdAt`, or before the first that is called `holdBefore`, until it is let go. */
  constructor(name: string, { holdAt = -1, holdBefore = '', stopsAtDisk = false } = {}) {
    this.name = name
    this.#holdAt = holdAt
    this.#holdBefore = holdBefore
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
    const index = this.points.push(label) - 1
    this.lastStepAt = performance.now()
    if (this.#isFree) return
    if (index === this.#holdAt || label === this.#holdBefore) this.hold()
    if (this.isHeld) await this.#gate.promise
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
export async function step<T>(work: () => Promise<T>): Promise<T> {
  const actor = storage.getStore()
  if (!actor) return work()
  actor.underWay++
  try {
    return await work()
  } finally {
    actor.underWay--
    actor.lastStepAt = performance.now()
  }
}
