import { useState } from 'react'

/** What somebody has typed over what is stored. What they have not touched goes on following the service. */
export function useDraft<T extends object>(stored: T) {
  const [draft, setDraft] = useState<Partial<T>>({})
  const changed = Object.fromEntries(
    Object.entries(draft).filter(([key, value]) => value !== stored[key as keyof T]),
  ) as Partial<T>
  return {
    values: { ...stored, ...draft } as T,
    /** Only what differs. */
    changed,
    isChanged: Object.keys(changed).length > 0,
    set: (change: Partial<T>) => setDraft((before) => ({ ...before, ...change })),
    reset: () => setDraft({}),
  }
}

export const numberOf = (text: string): number | null => (text.trim() === '' ? null : Number(text))
