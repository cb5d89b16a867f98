// One name of a path against one part of a pattern. A `*` takes as little as it can: every stretch between two of them has
// a fixed number of characters, so the first place where it fits is as good as any other, and nothing is ever tried again.
// The work is at most the length of the pattern times that of the name, and for a search a 32nd of that.
import { type CharacterClass, foldCase } from './character-class.ts'

export type Atom = { literal: string } | { any: true } | { class: CharacterClass }
export const STAR = Symbol('*')
/** In characters, on every file system that Linux has. */
const LONGEST_NAME = 255
const PLAIN = 0x80

/** The name is folded already. */
export type NameGlob = (name: string) => boolean

/** Finds a stretch; each answers where it ends, or -1. */
interface Stretch {
  at(name: string, start: number): number
  /** The first that begins at `start` or later. */
  from(name: string, start: number): number
  /** Whether one that begins at `start` or later ends with the name. */
  isAtEnd(name: string, start: number): boolean
}

export function compileName(tokens: readonly (Atom | typeof STAR)[]): NameGlob {
  const stretches = splitAtStars(tokens)
  const [first = [], ...others] = stretches
  const last = others.pop()
  const head = compileStretch(first)
  if (!last) return (name) => head.at(name, 0) === name.length
  const middle = others.filter((atoms) => atoms.length > 0).map(compileStretch)
  const tail = compileStretch(last)
  return (name) => {
    let at = head.at(name, 0)
    for (let index = 0; at >= 0 && index < middle.length; index++) at = middle[index]?.from(name, at) ?? -1
    return at >= 0 && tail.isAtEnd(name, at)
  }
}

/** The text that alone matches, of a pattern that has no wildcard. */
export function literalOf(tokens: readonly (Atom | typeof STAR)[]): string | undefined {
  let text = ''
  for (const token of tokens) {
    if (token === STAR || !('literal' in token)) return undefined
    text += foldCase(token.literal)
  }
  return text
}

function splitAtStars(tokens: readonly (Atom | typeof STAR)[]): Atom[][] {
  const stretches: Atom[][] = [[]]
  for (const token of tokens) {
    if (token === STAR) stretches.push([])
    else stretches.at(-1)?.push(token)
  }
  return stretches
}

function compileStretch(atoms: Atom[]): Stretch {
  const text = literalOf(atoms)
  return text === undefined ? mixedStretch(atoms) : literalStretch(text)
}

function literalStretch(text: string): Stretch {
  const { length } = text
  return {
    at: (name, start) => (name.startsWith(text, start) ? start + length : -1),
    from(name, start) {
      const found = name.indexOf(text, start)
      return found < 0 ? -1 : found + length
    },
    isAtEnd: (name, start) => name.length - start >= length && name.endsWith(text),
  }
}

type Test = (code: number) => boolean

const isAstral = (code: number) => code > 0xffff

function mixedStretch(atoms: Atom[]): Stretch {
  const tests = atoms.map(testOf)
  const { length } = tests
  if (length > LONGEST_NAME) return { at: () => -1, from: () => -1, isAtEnd: () => false }

  function at(name: string, start: number): number {
    let index = start
    for (let done = 0; done < length; done++) {
      const code = name.codePointAt(index)
      if (code === undefined || tests[done]?.(code) !== true) return -1
      index += isAstral(code) ? 2 : 1
    }
    return index
  }

  return {
    at,
    from: createSearch(tests),
    isAtEnd(name, start) {
      let index = name.length
      for (let left = length; left > 0 && index > start; left--)
        index -= index > 1 && isAstral(name.codePointAt(index - 2) ?? 0) ? 2 : 1
      return index >= start && at(name, index) === name.length
    },
  }
}

/** Shift-And: the bit of a test is set while all up to it have matched what was read last. */
function createSearch(tests: Test[]): Stretch['from'] {
  const words = Math.ceil(tests.length / 32)
  const last = 1 << ((tests.length - 1) & 31)
  const masks = createMasks(tests, words)
  const state = new Int32Array(words)
  return (name, start) => {
    if (name.length - start < tests.length) return -1
    state.fill(0)
    for (let index = start; index < name.length; ) {
      const code = name.codePointAt(index) ?? 0
      index += isAstral(code) ? 2 : 1
      const { bits, offset } = masks.of(code)
      let carry = 1
      for (let word = 0; word < words; word++) {
        const before = state[word] ?? 0
        state[word] = ((before << 1) | carry) & (bits[offset + word] ?? 0)
        carry = before >>> 31
      }
      if (((state[words - 1] ?? 0) & last) !== 0) return index
    }
    return -1
  }
}

/** Which tests a character passes. Found out once for those of ASCII, and for others as often as they come. */
function createMasks(tests: Test[], words: number) {
  const known = new Uint8Array(PLAIN)
  const other = new Int32Array(words)
  let plain: Int32Array | undefined
  const answer: { bits: Int32Array; offset: number } = { bits: other, offset: 0 }

  function fill(bits: Int32Array, offset: number, code: number): void {
    bits.fill(0, offset, offset + words)
    for (const [index, test] of tests.entries())
      if (test(code)) bits[offset + (index >> 5)] = (bits[offset + (index >> 5)] ?? 0) | (1 << (index & 31))
  }

  return {
    of(code: number): typeof answer {
      const isPlain = code < PLAIN
      plain ??= new Int32Array(PLAIN * words)
      answer.bits = isPlain ? plain : other
      answer.offset = isPlain ? code * words : 0
      if (!isPlain || known[code] === 0) fill(answer.bits, answer.offset, code)
      if (isPlain) known[code] = 1
      return answer
    },
  }
}

function testOf(atom: Atom): Test {
  if ('any' in atom) return () => true
  if ('class' in atom) return atom.class
  const wanted = foldCase(atom.literal).codePointAt(0)
  return (code) => code === wanted
}
