// Which paths of a tree are ignored. Patterns come from strangers, so no input may cost much: all patterns for paths
// form one automaton whose states are bits, and it takes one step for each name of a path. The states of the
// directories leading to the last path are kept, so in a walk each entry costs one step, however deep it is.
import { foldCase } from './character-class.ts'
import { GLOBSTAR, type IgnorePattern, type Name, parsePatterns } from './ignore-patterns.ts'
import { createNameGlobs, type NameGlobs } from './name-automaton.ts'
import { literalOf, type NameGlob } from './name-glob.ts'

export interface IgnoreRules {
  /** What is in an ignored directory is ignored, whatever else a pattern says. Quickest in the order of a walk. */
  isIgnored(path: string, isDirectory: boolean): boolean
}

/** The later of two patterns decides. -1: none matches. */
type Decide = (name: string, isDirectory: boolean) => number

interface Level {
  /** Of the directory, with a slash at its end. */
  prefix: string
  isIgnored: boolean
  state: Uint32Array
}

export function createIgnoreRules(text: string): IgnoreRules {
  const patterns = parsePatterns(text)
  if (patterns.length === 0) return { isIgnored: () => false }
  const nameGlobs = createNameGlobs()
  const byName = compileNames(patterns, nameGlobs)
  const paths = compilePaths(patterns, nameGlobs)
  const levels: Level[] = [{ prefix: '/', isIgnored: false, state: paths.first }]

  function isIgnoredIn({ isIgnored, state }: Level, name: string, isDirectory: boolean): boolean {
    if (isIgnored) return true
    const decisive = Math.max(byName(name, isDirectory), paths.decide(state, name, isDirectory))
    return decisive >= 0 && !patterns[decisive]?.isNegated
  }

  /** Of the directory that holds the path's last name. */
  function levelOf(path: string): Level {
    let level = levels.at(-1) as Level
    while (!path.startsWith(level.prefix)) {
      levels.pop()
      level = levels.at(-1) as Level
    }
    for (;;) {
      const start = level.prefix.length
      const end = path.indexOf('/', start)
      if (end < 0) return level
      const name = foldCase(path.slice(start, end))
      const isIgnored = isIgnoredIn(level, name, true)
      const state = isIgnored ? level.state : paths.step(level.state, name)
      level = { prefix: path.slice(0, end + 1), isIgnored, state }
      levels.push(level)
    }
  }

  return {
    isIgnored(path, isDirectory) {
      const level = levelOf(path)
      return isIgnoredIn(level, foldCase(path.slice(level.prefix.length)), isDirectory)
    },
  }
}

/** `**` and one name means that name anywhere. */
function nameOf({ isPath, parts }: IgnorePattern): Name | undefined {
  const name = parts.at(-1)
  const isAnywhere = !isPath || (parts.length === 2 && parts[0] === GLOBSTAR)
  return isAnywhere && name !== GLOBSTAR ? name : undefined
}

function compileNames(patterns: IgnorePattern[], nameGlobs: NameGlobs): Decide {
  /** The last of them for each name, among those for anything and among those for directories. */
  const literals = { any: new Map<string, number>(), directories: new Map<string, number>() }
  const globs: { index: number; onlyDirectories: boolean; matches: NameGlob }[] = []
  for (const [index, pattern] of patterns.entries()) {
    const name = nameOf(pattern)
    if (!name) continue
    const { onlyDirectories } = pattern
    const literal = literalOf(name)
    if (literal === undefined) globs.push({ index, onlyDirectories, matches: nameGlobs.compile(name) })
    else literals[onlyDirectories ? 'directories' : 'any'].set(literal, index)
  }
  globs.reverse()
  return (name, isDirectory) => {
    let best = literals.any.get(name) ?? -1
    if (isDirectory) best = Math.max(best, literals.directories.get(name) ?? -1)
    for (const { index, onlyDirectories, matches } of globs) {
      if (index < best) break
      if ((isDirectory || !onlyDirectories) && matches(name)) return index
    }
    return best
  }
}

/** A state is the set of parts that the next name may match. Parts of later patterns have higher numbers. */
interface Paths {
  first: Uint32Array
  step(state: Uint32Array, name: string): Uint32Array
  decide(state: Uint32Array, name: string, isDirectory: boolean): number
}

interface PathPart {
  /** Undefined: any number of names. */
  matches: NameGlob | undefined
  pattern: number
  isLast: boolean
  onlyDirectories: boolean
}

function compilePaths(patterns: IgnorePattern[], nameGlobs: NameGlobs): Paths {
  const parts: PathPart[] = []
  const starts: number[] = []
  for (const [index, pattern] of patterns.entries()) {
    if (nameOf(pattern)) continue
    starts.push(parts.length)
    for (const [at, part] of pattern.parts.entries()) {
      const matches = part === GLOBSTAR ? undefined : nameGlobs.compile(part)
      const isLast = at === pattern.parts.length - 1
      parts.push({ matches, pattern: index, isLast, onlyDirectories: pattern.onlyDirectories })
    }
  }
  const words = Math.ceil(parts.length / 32)

  /** With what may be passed over for nothing. */
  function add(state: Uint32Array, number: number): void {
    for (let at = number; ; at++) {
      state[at >>> 5] = (state[at >>> 5] ?? 0) | (1 << (at & 31))
      if (parts[at]?.matches) return
    }
  }

  const first = new Uint32Array(words)
  for (const start of starts) add(first, start)
  return {
    first,
    step(state, name) {
      const next = new Uint32Array(words)
      eachDown(state, (number) => {
        const part = parts[number]
        if (!part?.matches) add(next, number)
        else if (!part.isLast && part.matches(name)) add(next, number + 1)
        return false
      })
      return next
    },
    decide(state, name, isDirectory) {
      const found = eachDown(state, (number) => {
        const part = parts[number]
        return part?.isLast === true && (isDirectory || !part.onlyDirectories) && part.matches?.(name) === true
      })
      return parts[found]?.pattern ?? -1
    },
  }
}

/** From the highest on, until `isFound`, which answers -1 if nothing is. */
function eachDown(state: Uint32Array, isFound: (number: number) => boolean): number {
  for (let word = state.length - 1; word >= 0; word--) {
    for (let bits = state[word] ?? 0; bits !== 0; ) {
      const bit = 31 - Math.clz32(bits)
      bits &= ~(1 << bit)
      if (isFound(word * 32 + bit)) return word * 32 + bit
    }
  }
  return -1
}
