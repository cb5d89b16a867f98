// The uploads as pages show them.
import { useSyncExternalStore } from 'react'
import { useSession } from '../../../../api/access/session.ts'

export interface Upload {
  id: number
  owner: string
  serverId: string
  name: string
  bytesDone: number
  bytesTotal: number
  state: 'waiting' | 'sending' | 'done' | { error: unknown }
}

let uploads: readonly Upload[] = []
const listeners = new Set<() => void>()

/** A thousand small files change it several thousand times: whoever shows it is told a few times a second. */
const TELL_EVERY_MS = 100
let isTelling = false

function set(next: readonly Upload[]): void {
  uploads = next
  if (isTelling) return
  isTelling = true
  setTimeout(() => {
    isTelling = false
    for (const listener of listeners) listener()
  }, TELL_EVERY_MS)
}

export const addUploads = (added: readonly Upload[]) => set([...uploads, ...added])

export function updateUploads(ids: readonly number[], change: (upload: Upload) => Partial<Upload>): void {
  const meant = new Set(ids)
  set(uploads.map((each) => (meant.has(each.id) ? { ...each, ...change(each) } : each)))
}

export function removeUploads(ids: readonly number[]): void {
  const meant = new Set(ids)
  set(uploads.filter(({ id }) => !meant.has(id)))
}

/** Those of whoever is signed in. */
export function useUploads(serverId: string): readonly Upload[] {
  const owner = useSession().data?.id
  const all = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => uploads,
  )
  return all.filter((upload) => upload.serverId === serverId && upload.owner === owner)
}
