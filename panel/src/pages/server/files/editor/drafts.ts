// What was typed and not saved, kept in this browser until it is.

export interface Draft {
  text: string
  /** Of the file that the draft began with. Saving it fails if somebody has changed the file since. */
  etag: string | null
  /** The text of that file. */
  base?: string
}

const keyOf = (serverId: string, path: string) => `gamekeeper-draft:${serverId}:${path}`

export function readDraft(serverId: string, path: string): Draft | null {
  try {
    const stored = localStorage.getItem(keyOf(serverId, path))
    return stored === null ? null : (JSON.parse(stored) as Draft)
  } catch {
    return null
  }
}

/** Null forgets it. A browser without storage, or with a full one, keeps no drafts. */
export function keepDraft(serverId: string, path: string, draft: Draft | null): void {
  try {
    if (draft === null) localStorage.removeItem(keyOf(serverId, path))
    else localStorage.setItem(keyOf(serverId, path), JSON.stringify(draft))
  } catch {
    return
  }
}
