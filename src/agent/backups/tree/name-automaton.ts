// Matches every glob of a list that has a `?` or a class against one name at once: a list can hold thousands, so
// matching them one by one would cost the main thread too much per entry of a walk. The state is a bit for each
// character a glob may have reached (Shift-And), so 32 of them cost one step per character of the name.
import { type Atom, compileName, hasOnlyText, type NameGlob, STAR, testOf } from './name-glob.ts'

const PLAIN = 0x80
/** Characters beyond ASCII whose tests are remembered. */
const OTHERS_KEPT = 64

type Token = Atom | typeof STAR
type Test = (code: number) => boolean

export interface NameGlobs {
  /** All of them have to be compiled before the first is asked. */
  compile(tokens: readonly Token[]): NameGlob
}

export function createNameGlobs(): NameGlobs {
  /** Of the character that leads to each bit; none leads to the first bit of a glob. */
  const tests: (Test | undefined)[] = []
  const firstStates: number[] = []
  /** A `*` stands there: any character leaves the glob where it is. */
  const loops: number[] = []
  let run: ((name: string) => Int32Array) | undefined
  let asked: string | undefined
  let state: Int32Array = new Int32Array(0)

  function add(tokens: readonly Token[]): number {
    firstStates.push(tests.length)
    tests.push(undefined)
    for (const token of tokens) {
      if (token === STAR) loops.push(tests.length - 1)
      else tests.push(testOf(token))
    }
    return tests.length - 1
  }

  return {
    compile(tokens) {
      if (hasOnlyText(tokens)) return compileName(tokens)
      const last = add(tokens)
      return (name) => {
        run ??= createRun(tests, firstStates, loops)
        if (name !== asked) state = run(name)
        asked = name
        return ((state[last >>> 5] ?? 0) & (1 << (last & 31))) !== 0
      }
    },
  }
}

/** Answers the state after the last character of a name; the next call overwrites it. */
function createRun(tests: (Test | undefined)[], firstStates: number[], loops: number[]): (name: string) => Int32Array {
  const words = Math.ceil(tests.length / 32)
  const first = bitsOf(firstStates, words)
  const loop = bitsOf(loops, words)
  const masks = createMasks(tests, words)
  const state = new Int32Array(words)
  return (name) => {
    state.set(first)
    for (let index = 0; index < name.length; ) {
      const code = name.codePointAt(index) ?? 0
      index += code > 0xffff ? 2 : 1
      const mask = masks.of(code)
      let carry = 0
      for (let word = 0; word < words; word++) {
        const before = state[word] ?? 0
        state[word] = (((before << 1) | carry) & (mask[word] ?? 0)) | (before & (loop[word] ?? 0))
        carry = before >>> 31
      }
    }
    return state
  }
}

function bitsOf(numbers: number[], words: number): Int32Array {
  const bits = new Int32Array(words)
  for (const number of numbers) bits[number >>> 5] = (bits[number >>> 5] ?? 0) | (1 << (number & 31))
  return bits
}

/** Which tests a character passes. Found out once for those of ASCII, and for others until another takes its place. */
function createMasks(tests: (Test | undefined)[], words: number) {
  const plain: (Int32Array | undefined)[] = Array(PLAIN).fill(undefined)
  const others: ({ code: number; mask: Int32Array } | undefined)[] = Array(OTHERS_KEPT).fill(undefined)

  function find(code: number): Int32Array {
    const mask = new Int32Array(words)
    for (let number = 0; number < tests.length; number++)
      if (tests[number]?.(code)) mask[number >>> 5] = (mask[number >>> 5] ?? 0) | (1 << (number & 31))
    return mask
  }

  function ofOther(code: number): Int32Array {
    const known = others[code % OTHERS_KEPT]
    if (known?.code === code) return known.mask
    const mask = find(code)
    others[code % OTHERS_KEPT] = { code, mask }
    return mask
  }

  return {
    of(code: number): Int32Array {
      if (code >= PLAIN) return ofOther(code)
      const mask = plain[code] ?? find(code)
      plain[code] = mask
      return mask
    },
  }
}
