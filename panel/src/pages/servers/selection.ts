import { useState } from 'react'

export interface Selection {
  has: (id: string) => boolean
  toggle: (id: string) => void
  set: (ids: readonly string[]) => void
}

export function useSelection(): Selection & { ids: ReadonlySet<string> } {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  return {
    ids,
    has: (id) => ids.has(id),
    toggle: (id) => setIds(ids.symmetricDifference(new Set([id]))),
    set: (all) => setIds(new Set(all)),
  }
}
