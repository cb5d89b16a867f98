import type { ActivityEntry } from '../../../../../src/sdk/index.ts'

const NAMING = ['command', 'action', 'player', 'path', 'hostname', 'name', 'archive', 'directory', 'kind'] as const
const LISTING = ['files', 'paths', 'deleted', 'moves'] as const
const SHOWN = 3

/** What the entry is about, in its own words: a path, a name, a command. Null when its event says it all. */
export function subjectOf({ properties }: Pick<ActivityEntry, 'properties'>): string | null {
  for (const key of LISTING) {
    const value = properties[key]
    if (Array.isArray(value) && value.length > 0) return listOf(value)
  }
  for (const key of NAMING) {
    const value = properties[key]
    if (typeof value === 'string' && value !== '') return value
  }
  return null
}

function listOf(values: readonly unknown[]): string {
  const names = values.slice(0, SHOWN).map(textOf).join(', ')
  return values.length > SHOWN ? `${names} … +${values.length - SHOWN}` : names
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  const { from, to, path } = value as { from?: unknown; to?: unknown; path?: unknown }
  if (typeof from === 'string' && typeof to === 'string') return `${from} → ${to}`
  return typeof path === 'string' ? path : JSON.stringify(value)
}
