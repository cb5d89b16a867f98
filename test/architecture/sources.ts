// The source files and what they import, read without running them.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface Source {
  /** From the root of the repository. */
  path: string
  text: string
}

export function sourcesUnder(...folders: string[]): Source[] {
  return folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
      .filter((path) => !path.includes('node_modules'))
      .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') })),
  )
}

const STATIC = /^\s*(?:import|export)\s(?:[^'"`;]*?\sfrom\s*)?['"]([^'"]+)['"]/gm
const DYNAMIC = /\bimport\s*\(\s*['"`]([^'"`]+)['"`]/g
const COMPUTED = /\bimport\s*\(\s*[^'"`\s)]/g

/** Our own files that a source imports: static, dynamic and type imports alike. */
export function importsOf({ path, text }: Source): string[] {
  const named = [...text.matchAll(STATIC), ...text.matchAll(DYNAMIC)].map(([, name]) => name ?? '')
  const ours = named.filter((name) => name.startsWith('.')).map((name) => normalize(join(dirname(path), name)))
  // What cannot be read cannot be allowed.
  return [...ours, ...[...text.matchAll(COMPUTED)].map(() => '(computed)')]
}

/** Brings code with it: one whose names are all types is gone once the types are. */
const LOADING = /^\s*(?:import|export)\s+(?!type\s)(?:((?:\*|[\w$]+|\{)[^'"`;]*?)\sfrom\s*)?['"]([^'"]+)['"]/gm

const isOfTypes = (names: string) =>
  names.startsWith('{') &&
  names
    .replace(/[{}]/g, '')
    .split(',')
    .every((name) => name.trim() === '' || name.trim().startsWith('type '))

/** Our own files that are loaded with these, from the root of the repository: not what is imported later, or for its types. */
export function loadedWith(...paths: string[]): Set<string> {
  const loaded = new Set(paths)
  for (const path of loaded) {
    const text = readFileSync(join(ROOT, path), 'utf8')
    for (const [, names = '', name = ''] of text.matchAll(LOADING))
      if (name.startsWith('.') && !isOfTypes(names.trim())) loaded.add(normalize(join(dirname(path), name)))
  }
  return loaded
}
