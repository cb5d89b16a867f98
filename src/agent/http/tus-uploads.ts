// The uploads under way on this machine: lists them, allows each one request at a time, and removes old ones.
import { readdirSync } from 'node:fs'
import { fail } from '../../contract/errors.ts'
import { hasCode } from '../../kit/files/errno.ts'
import { uploadProperties } from '../files/changes/probes.ts'
import type { FilesOfAgent } from '../files/index.ts'
import { isLeaving } from '../files/sandbox/errors.ts'
import { createPartialUploads, type PartialUploads } from '../files/uploads/partial-uploads.ts'
import type { Journal } from '../journal/journal.ts'
import { type LinkDoor, RENEWED_MS } from './link-door.ts'

export const EXPIRES_AFTER_MS = 24 * 3600_000
const SWEEP_MS = 10 * 60_000

export interface TusUploads {
  of(serverId: string): PartialUploads
  /** A sender that lost its connection comes back before we have noticed: the newer request ends the older. */
  alone<T>(id: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Must be called when a server's folders are taken away. */
  forget(serverId: string): void
  /** Goes on after a crash, then takes away what has expired now and then. */
  start(): Promise<void>
  /** After a sweep that is under way. */
  sweep(): Promise<void>
  stop(): Promise<void>
}

export function createTusUploads(deps: {
  serversFolder: string
  files: FilesOfAgent
  journal: Journal
  door: LinkDoor
  clock: { now(): number }
  onUnexpected: (error: unknown, serverId: string) => void
}): TusUploads {
  const servers = new Map<string, PartialUploads>()
  const held = new Map<string, { abort: AbortController; done: Promise<unknown> }>()
  const stopping = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let sweeping = Promise.resolve()

  function of(serverId: string): PartialUploads {
    const known = servers.get(serverId)
    if (known) return known
    const made = createPartialUploads(deps.files.server(serverId), (record) =>
      deps.journal.add({
        // Made of the upload's own id: an upload that is finished again after a crash is told of once.
        id: `act_${record.id.slice('upl_'.length)}`,
        serverId,
        kind: 'file.uploaded',
        cause: record.cause,
        properties: uploadProperties(record.directory, [record], 'tus'),
      }),
    )
    servers.set(serverId, made)
    return made
  }

  async function forEachServer(work: (uploads: PartialUploads) => void | Promise<void>): Promise<void> {
    for (const serverId of serverIds(deps.serversFolder)) {
      if (stopping.signal.aborted) return
      try {
        await work(of(serverId))
      } catch (error) {
        if (!stopping.signal.aborted && !isLeaving(error)) deps.onUnexpected(error, serverId)
      }
    }
  }

  const sweep = () => {
    sweeping = sweeping.then(() =>
      forEachServer((uploads) =>
        uploads.expire(deps.clock.now() - EXPIRES_AFTER_MS, (id) => held.has(id), stopping.signal),
      ),
    )
    return sweeping
  }

  /** A sender that missed the answer may ask under the same link for as long as if it had gone on sending. */
  const renewFinished = () =>
    forEachServer(async (uploads) => {
      const since = deps.clock.now() - RENEWED_MS
      for await (const { record, lastByteAt } of uploads.finishedSince(since, stopping.signal))
        deps.door.renew(record.uploadId, lastByteAt)
    })

  return {
    of,
    async alone(id, signal, work) {
      for (let holder = held.get(id); holder; holder = held.get(id)) {
        holder.abort.abort(fail('server_busy', 'A newer request goes on with this upload.'))
        await holder.done
      }
      const abort = new AbortController()
      const running = work(AbortSignal.any([abort.signal, signal]))
      held.set(id, { abort, done: running.catch(() => {}) })
      try {
        return await running
      } finally {
        held.delete(id)
      }
    },
    forget(serverId) {
      servers.delete(serverId)
    },
    async start() {
      await forEachServer(async (uploads) => {
        try {
          await uploads.recover()
        } finally {
          for (const { record, lastByteAt } of uploads.list()) deps.door.renew(record.uploadId, lastByteAt)
        }
      })
      // However many there are, the start does not wait for them.
      sweeping = renewFinished()
      void sweep()
      timer = setInterval(() => void sweep(), SWEEP_MS).unref()
    },
    sweep,
    async stop() {
      clearInterval(timer)
      stopping.abort()
      await sweeping
    },
  }
}

function serverIds(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.startsWith('srv_'))
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}
