// How much lies below each entry of a folder. The service counts a server as a whole, so a folder is walked here, within bounds.
import { client } from '../../../../api/client.ts'

export interface Measured {
  name: string
  path: string
  isFolder: boolean
  sizeBytes: number
  files: number
  /** There is more below it than was counted. */
  isPartial: boolean
}

/** Of a hundred entries each. */
const LISTINGS_AT_MOST = 300

interface Place {
  path: string
  /** The entry of the folder that it lies below; null for the folder itself. */
  root: Measured | null
}

/** Calls back with what is known so far after each listing; breadth first, so that every entry has something early. */
export async function measure(
  serverId: string,
  folder: string,
  onProgress: (measured: Measured[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const measured: Measured[] = []
  const queue: Place[] = [{ path: folder, root: null }]
  for (let listings = 0; queue.length > 0; ) {
    const place = queue.shift()
    if (!place) break
    let cursor: string | null = null
    do {
      if (listings++ >= LISTINGS_AT_MOST) {
        for (const { root } of [place, ...queue]) if (root) root.isPartial = true
        return onProgress([...measured])
      }
      const query = { path: place.path, limit: 100, ...(cursor === null ? {} : { cursor }) }
      const page: Awaited<ReturnType<typeof client.files.list>> = await client.files.list(serverId, query, { signal })
      for (const entry of page.data) {
        const isFolder = entry.kind === 'directory'
        let root = place.root
        if (!root) {
          root = { name: entry.name, path: entry.path, isFolder, sizeBytes: 0, files: 0, isPartial: false }
          measured.push(root)
        }
        if (isFolder) queue.push({ path: entry.path, root })
        else {
          root.sizeBytes += entry.sizeBytes
          root.files++
        }
      }
      cursor = page.nextCursor
      onProgress([...measured])
    } while (cursor !== null)
  }
}
