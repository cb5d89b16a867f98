// The lines of a `.gitignore`, read as git reads them.
import { readClass } from './character-class.ts'
import { type Atom, STAR } from './name-glob.ts'

/** `**` between slashes: any number of directories, none included. */
export const GLOBSTAR = Symbol('**')
export type Name = (Atom | typeof STAR)[]
/** Of the names that it matches, or `**`. */
export type Part = Name | typeof GLOBSTAR

export interface IgnorePattern {
  /** `!`: what matches is not ignored after all. */
  isNegated: boolean
  onlyDirectories: boolean
  /** It has a slash, so it means a path from the top; any other means a name, wherever it is. */
  isPath: boolean
  /** A `**` is never the last. */
  parts: Part[]
}

export function parsePatterns(text: string): IgnorePattern[] {
  const lines = text.replace(/^\ufeff/, '').split('\n')
  return lines.flatMap((line) => parseLine(line.endsWith('\r') ? line.slice(0, -1) : line) ?? [])
}

/** Undefined where it holds no pattern, or one that can never match. */
function parseLine(line: string): IgnorePattern | undefined {
  if (line.startsWith('#')) return undefined
  const trimmed = trimEnd(line)
  const isNegated = trimmed.startsWith('!')
  const onlyDirectories = trimmed.endsWith('/')
  const body = trimmed.slice(isNegated ? 1 : 0, onlyDirectories ? -1 : undefined)
  const isPath = body.includes('/')
  const names = splitNames(body.startsWith('/') ? body.slice(1) : body)
  if (!names) return undefined
  return { isNegated, onlyDirectories, isPath, parts: isPath ? partsOf(names) : names }
}

/** Spaces at the end do not count, unless a backslash is before them. */
function trimEnd(line: string): string {
  let end = 0
  for (let at = 0; at < line.length; at++) {
    if (line[at] === '\\') end = Math.min(++at + 1, line.length)
    else if (line[at] !== ' ' && line[at] !== '\t') end = at + 1
  }
  return line.slice(0, end)
}

/** Undefined where a name is empty, or a bracket or an escape has no end: that matches nothing. */
function splitNames(body: string): Name[] | undefined {
  const names: Name[] = [[]]
  for (let at = 0; at < body.length; ) {
    const read = readToken(body, at)
    if (!read) return undefined
    if (read.token === '/') names.push([])
    else names.at(-1)?.push(read.token)
    at = read.end
  }
  return names.every((name) => name.length > 0) ? names : undefined
}

function readToken(body: string, at: number): { token: Atom | typeof STAR | '/'; end: number } | undefined {
  const char = String.fromCodePoint(body.codePointAt(at) ?? 0)
  const end = at + char.length
  if (char === '/') return { token: '/', end }
  if (char === '*') return { token: STAR, end }
  if (char === '?') return { token: { any: true }, end }
  if (char === '[') {
    const found = readClass(body, at)
    return found && { token: { class: found.matches }, end: found.end }
  }
  if (char !== '\\') return { token: { literal: char }, end }
  const escaped = body.codePointAt(end)
  if (escaped === undefined) return undefined
  const literal = String.fromCodePoint(escaped)
  return { token: literal === '/' ? '/' : { literal }, end: end + literal.length }
}

/** At the end a `**` stands for all that a directory holds, which is at least a name. */
function partsOf(names: Name[]): Part[] {
  const parts: Part[] = []
  for (const name of names) {
    const isGlobstar = name.length > 1 && name.every((token) => token === STAR)
    if (!isGlobstar) parts.push(name)
    else if (parts.at(-1) !== GLOBSTAR) parts.push(GLOBSTAR)
  }
  if (parts.at(-1) === GLOBSTAR) parts.push([STAR])
  return parts
}
