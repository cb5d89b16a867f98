// What was typed and not saved, kept in this browser until it is, for whoever typed it.

export interface Draft {
  text: string
  /** Of the file that the draft began with. Saving it fails if somebody has changed the file since. */
  etag: string | null
  /** The text of that file. */
  base?: string
}

/** Of which file, and by whom: the id of their token. */
export interface DraftOf {
  owner: string
  serverId: string
  path: string
}

const keyOf = ({ owner, serverId, path }: DraftOf) => `gamekeeper-draft:${owner}:${serverId}:${path}`

export function readDraft(of: DraftOf): Draft | null {
  try {
    const stored = localStorage.getItem(keyOf(of))
    return stored === null ? null : (JSON.parse(stored) as Draft)
  } catch {
    return null
  }
}

/** Null forgets it. A browser without storage, or with a full one, keeps no drafts. */
export function keepDraft(of: DraftOf, draft: Draft | null): void {
  try {
    if (draft === null) localStorage.removeItem(keyOf(of))
    else localStorage.setItem(keyOf(of), JSON.stringify(draft))
  } catch {
    return
  }
}
