// What goes wrong with a bucket, or with whoever uses it, at a random one of its requests.
import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { S3Proxy, S3Seen, S3Trouble } from '../../support/s3-proxy.ts'
import type { VersityGw } from '../../support/versitygw.ts'
import type { Random } from '../history/random.ts'

export interface Mishap {
  readonly about: string
  /** From now on its request may come. */
  arm(): void
  /** Whether it has happened, and nothing is in the way any more. */
  readonly isOver: boolean
  /** Whatever has happened: the bucket is as it should be, and answers. */
  end(): Promise<void>
}

interface Scene {
  gateway: VersityGw
  proxy: S3Proxy
  random: Random
  /** SIGKILL of whoever uses the bucket. */
  kill(): Promise<void>
}

const KINDS = ['kill', 'outage', 'stall', 'errors', 'cuts', 'losses'] as const
type Kind = (typeof KINDS)[number]

/** A run asks for about this much after its probes, and sends this many blobs. */
const REQUESTS = 12
const BLOBS_SENT = 4
const PROBED = /\/probe\//
const BLOB_BYTES = 400_000
const OUTAGE_MS = 1500

export function chooseMishap(scene: Scene): Mishap {
  const { proxy, random } = scene
  const kind = random.pick(KINDS)
  const play = PLAYS[kind](scene)
  const isProbeMeant = random.chance(0.2)
  const from = random.int(play.isMeant ? BLOBS_SENT : REQUESTS)
  // Also in the middle of other trouble.
  const killAt = kind !== 'kill' && random.chance(0.4) ? from + random.int(REQUESTS) : -1
  let asked = 0
  let hasCome = false

  function trouble(seen: S3Seen): S3Trouble | undefined {
    if (!isProbeMeant && PROBED.test(seen.url)) return undefined
    if (play.isMeant?.(seen) === false) return undefined
    const at = asked++
    if (at === killAt) void scene.kill()
    if (at < from) return undefined
    hasCome = true
    return play.trouble(seen)
  }

  return {
    get about() {
      const text = `${play.about} from request ${from}${killAt < 0 ? '' : `, killed at ${killAt}`}`
      return hasCome ? text : `${text} (which did not come)`
    },
    arm() {
      proxy.trouble = trouble
    },
    get isOver() {
      return play.isOver()
    },
    async end() {
      proxy.trouble = () => undefined
      await play.end?.()
    },
  }
}

interface Play {
  about: string
  /** Only these are counted; all of them by default. */
  isMeant?(seen: S3Seen): boolean
  /** Of each request from the first one on that it is about. */
  trouble(seen: S3Seen): S3Trouble | undefined
  isOver(): boolean
  end?(): Promise<void>
}

const PLAYS: Readonly<Record<Kind, (scene: Scene) => Play>> = {
  kill: ({ random, kill }) => {
    const isAnswered = random.chance(0.5)
    return once(`killed when ${isAnswered ? 'the bucket has done it' : 'it is sent'}`, () => {
      if (isAnswered) return { kind: 'before-answer', work: kill }
      void kill()
      return { kind: 'cut-request', afterBytes: random.int(BLOB_BYTES) }
    })
  },

  outage({ gateway, random }) {
    const isAnswered = random.chance(0.5)
    const downMs = random.int(OUTAGE_MS)
    let outage: Promise<void> | undefined
    let isOver = false
    const begin = () => {
      outage ??= run()
    }
    const run = async () => {
      await gateway.kill()
      await delay(downMs)
      await gateway.start()
      isOver = true
    }
    return {
      about: `the server is away for ${downMs} ms`,
      trouble() {
        if (isAnswered) return outage ? undefined : { kind: 'before-answer', work: begin }
        begin()
        return undefined
      },
      isOver: () => isOver,
      end: async () => outage,
    }
  },

  stall({ proxy, random }) {
    const kind = random.pick(['stall-request', 'stall-answer'] as const)
    const afterBytes = random.int(BLOB_BYTES)
    const stalledMs = random.int(OUTAGE_MS)
    let isOver = false
    const end = async () => {
      proxy.cutAll()
      isOver = true
    }
    const play = once(`${kind} for ${stalledMs} ms`, () => {
      setTimeout(end, stalledMs).unref()
      return { kind, afterBytes }
    })
    return { ...play, isOver: () => isOver, end }
  },

  errors({ random }) {
    const [status, code] = random.pick([
      [500, 'InternalError'],
      [503, 'SlowDown'],
    ] as const)
    return several(`${status}`, 1 + random.int(10), () => ({ kind: 'answer', status, code }))
  },

  cuts({ random }) {
    const kind = random.pick(['cut-request', 'cut-answer'] as const)
    return several(kind, 1 + random.int(10), () => ({ kind, afterBytes: random.int(BLOB_BYTES) }))
  },

  /** What was sent is acknowledged, and only a part of it is kept, or nothing; where it replaces something, that is still there. */
  losses({ gateway, random }) {
    const fileOf = (url: string) => join(gateway.dir, '..', decodeURIComponent(url.split('?')[0] ?? ''))
    const lose = (file: string, before: Buffer | undefined, status: number) => {
      // Where it refuses to overwrite, it has acknowledged nothing.
      if (status !== 200) return
      if (before) writeFileSync(file, before)
      else if (random.chance(0.3)) rmSync(file)
      else truncateSync(file, random.int(statSync(file).size))
    }
    const play = several('loses', 1 + random.int(3), ({ url }) => {
      const file = fileOf(url)
      const before = existsSync(file) ? readFileSync(file) : undefined
      return { kind: 'before-answer', work: (status) => lose(file, before, status) }
    })
    return { ...play, isMeant: ({ method }) => method === 'PUT' }
  },
}

function once(about: string, trouble: (seen: S3Seen) => S3Trouble): Play {
  return several(about, 1, trouble)
}

function several(about: string, times: number, trouble: (seen: S3Seen) => S3Trouble): Play {
  let left = times
  return {
    about: times === 1 ? about : `${about}, ${times} times`,
    trouble: (seen) => (left-- > 0 ? trouble(seen) : undefined),
    isOver: () => left <= 0,
  }
}
