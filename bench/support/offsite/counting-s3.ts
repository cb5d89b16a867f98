// An S3 server on this machine that writes down each request, the same line for everybody who asks.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatS3Place } from '../../../src/contract/offsite-place.ts'
import { startVersityGw } from '../../../test/support/versitygw.ts'

export interface Traffic {
  requests: number
  bytesUp: number
  /** How often each operation was asked for. */
  operations: Record<string, number>
}

export interface CountingS3 {
  url: string
  /** Of its process. */
  pid: number
  bucket: string
  /** Where the objects below the prefix are files. */
  dirOf(prefix: string): string
  /** As `GAMEKEEPER_OFFSITE` names it. */
  placeOf(prefix: string): string
  /** The keys, as the environment of a process has them. */
  env: Record<string, string>
  /** What was asked since the last call. Whoever is measured is alone then. */
  traffic(): Traffic
  stop(): Promise<void>
}

/** Connections are kept, as providers do; versitygw does not by default. */
export async function startCountingS3(base: string): Promise<CountingS3> {
  const log = join(base, 'requests.log')
  const server = await startVersityGw({ base, args: ['--keep-alive', '--access-log', log] })
  let read = 0
  return {
    url: server.url,
    pid: server.pid,
    bucket: server.bucket,
    dirOf: (prefix) => join(server.dir, prefix),
    placeOf: (prefix) => formatS3Place(server.place(prefix)),
    env: {
      AWS_ACCESS_KEY_ID: server.keys.accessKeyId,
      AWS_SECRET_ACCESS_KEY: server.keys.secretAccessKey,
    },
    traffic() {
      const text = readFileSync(log, 'utf8')
      const fresh = text.slice(read)
      read = text.length
      return sumUp(fresh)
    },
    stop: server.stop,
  }
}

/** Operation, key, address, status, error, bytes of the answer, size of the object: S3's own form of such a log. */
const LINE = / s3_(\w+) (?:- |\S+ )?\/\S* \d{3} \S+ (?:\d+|-) (\d+|-) /

export function sumOf(all: readonly Traffic[]): Traffic {
  const sum: Traffic = { requests: 0, bytesUp: 0, operations: {} }
  for (const { requests, bytesUp, operations } of all) {
    sum.requests += requests
    sum.bytesUp += bytesUp
    for (const [name, count] of Object.entries(operations)) sum.operations[name] = (sum.operations[name] ?? 0) + count
  }
  return sum
}

function sumUp(log: string): Traffic {
  const traffic: Traffic = { requests: 0, bytesUp: 0, operations: {} }
  for (const line of log.split('\n')) {
    const [, operation, stored] = LINE.exec(line) ?? []
    if (operation === undefined) continue
    traffic.requests++
    traffic.operations[operation] = (traffic.operations[operation] ?? 0) + 1
    if (operation === 'PutObject' || operation === 'UploadPart') traffic.bytesUp += Number(stored) || 0
  }
  return traffic
}
