// Regular expressions of strangers, matched in time that grows with the text and not with the cleverness of whoever wrote
// them: an automaton that is in all of its states at once and never goes back. What cannot be matched so (lookaround, back
// references) or would need too many states is no pattern here.

/** Repetitions are written out, so `{1,500}` costs as much as 500 letters. */
const STATES_MAX = 2000
const DEPTH_MAX = 20
const REPEAT_MAX = 1000

export interface LinearPattern {
  /** Whether it is found in the text; `^` and `$` stand for the ends of all of it. */
  test(text: string): boolean
}

type Matches = (char: string) => boolean
type Node =
  | { kind: 'char'; matches: Matches }
  | { kind: 'begin' }
  | { kind: 'end' }
  | { kind: 'all'; parts: Node[] }
  | { kind: 'one of'; parts: Node[] }
  | { kind: 'repeat'; part: Node; min: number; max: number }

class NotLinear extends Error {}

/** null where the expression is not one that can be matched so. */
export function compilePattern(source: string, { ignoreCase = false } = {}): LinearPattern | null {
  try {
    return automatonOf(parse([...source], ignoreCase))
  } catch (error) {
    if (error instanceof NotLinear) return null
    throw error
  }
}

const isDigit: Matches = (char) => char >= '0' && char <= '9'
const isWord: Matches = (char) => /^\w$/.test(char)
const isSpace: Matches = (char) => /^\s$/.test(char)
const CLASSES: Record<string, Matches> = {
  d: isDigit,
  w: isWord,
  s: isSpace,
  D: (char) => !isDigit(char),
  W: (char) => !isWord(char),
  S: (char) => !isSpace(char),
}
const ESCAPES: Record<string, string> = { t: '\t', n: '\n', r: '\r' }

function parse(source: string[], ignoreCase: boolean): Node {
  let at = 0
  const peek = () => source[at]
  const take = (): string => {
    const char = source[at++]
    if (char === undefined) throw new NotLinear('it ends too early')
    return char
  }
  const literal = (char: string): Matches => {
    if (!ignoreCase) return (other) => other === char
    const lower = char.toLowerCase()
    return (other) => other.toLowerCase() === lower
  }

  function alternatives(depth: number): Node {
    if (depth > DEPTH_MAX) throw new NotLinear('it is nested too deeply')
    const parts = [sequence(depth)]
    while (peek() === '|') {
      at++
      parts.push(sequence(depth))
    }
    return parts.length === 1 ? (parts[0] as Node) : { kind: 'one of', parts }
  }

  function sequence(depth: number): Node {
    const parts: Node[] = []
    while (peek() !== undefined && peek() !== '|' && peek() !== ')') parts.push(repeated(atom(depth)))
    return { kind: 'all', parts }
  }

  function atom(depth: number): Node {
    const char = take()
    if (char === '^') return { kind: 'begin' }
    if (char === '$') return { kind: 'end' }
    if (char === '.') return { kind: 'char', matches: (other) => other !== '\n' }
    if (char === '(') return group(depth)
    if (char === '[') return { kind: 'char', matches: characterClass() }
    if (char === '\\') return { kind: 'char', matches: escaped() }
    if ('*+?{'.includes(char)) throw new NotLinear('there is nothing to repeat')
    return { kind: 'char', matches: literal(char) }
  }

  function group(depth: number): Node {
    if (peek() === '?') {
      at++
      if (take() !== ':') throw new NotLinear('it looks around')
    }
    const inner = alternatives(depth + 1)
    if (take() !== ')') throw new NotLinear('a group is not closed')
    return inner
  }

  function escaped(): Matches {
    const char = take()
    const named = CLASSES[char]
    if (named) return named
    if (ESCAPES[char]) return literal(ESCAPES[char])
    if (/[A-Za-z0-9]/.test(char)) throw new NotLinear('it refers back, or has an escape that is not known')
    return literal(char)
  }

  function characterClass(): Matches {
    const isNegated = peek() === '^'
    if (isNegated) at++
    const parts: Matches[] = []
    while (peek() !== ']' || parts.length === 0) parts.push(classPart())
    at++
    return (char) => parts.some((part) => part(char)) !== isNegated
  }

  function classPart(): Matches {
    const first = take()
    if (first === '[' && (peek() === ':' || peek() === '=')) throw new NotLinear('it names a class of POSIX')
    const matches = first === '\\' ? escaped() : literal(first)
    if (peek() !== '-' || source[at + 1] === ']' || source[at + 1] === undefined || first === '\\') return matches
    at++
    const last = take()
    const end = last === '\\' ? take() : last
    if (end < first) throw new NotLinear('a range goes backwards')
    const inRange: Matches = (char) => char >= first && char <= end
    return ignoreCase ? (char) => inRange(char.toLowerCase()) || inRange(char.toUpperCase()) : inRange
  }

  function repeated(part: Node): Node {
    const [min, max] = quantity()
    if (min === 1 && max === 1) return part
    // Lazy or not, whether it is found is the same.
    if (peek() === '?') at++
    else if (peek() === '+' || peek() === '*') throw new NotLinear('it is possessive')
    return { kind: 'repeat', part, min, max }
  }

  function quantity(): [number, number] {
    const sign = peek()
    if (sign === '*' || sign === '+' || sign === '?') at++
    if (sign === '*') return [0, Number.POSITIVE_INFINITY]
    if (sign === '+') return [1, Number.POSITIVE_INFINITY]
    if (sign === '?') return [0, 1]
    if (sign !== '{') return [1, 1]
    const [all, min = '', comma, max = ''] =
      /^\{(\d{1,4})(,?)(\d{0,4})\}/.exec(source.slice(at, at + 12).join('')) ?? []
    if (all === undefined) throw new NotLinear('a quantity is not understood')
    at += all.length
    const most = comma === '' ? Number(min) : max === '' ? Number.POSITIVE_INFINITY : Number(max)
    if (Number(min) > REPEAT_MAX || (most > REPEAT_MAX && most !== Number.POSITIVE_INFINITY) || most < Number(min))
      throw new NotLinear('it repeats too often')
    return [Number(min), most]
  }

  const pattern = alternatives(0)
  if (at < source.length) throw new NotLinear('a group is not open')
  return pattern
}

/** What takes a state to the next: a character, or a condition that takes none. */
interface State {
  matches?: Matches
  condition?: 'begin' | 'end'
  next: number[]
}

function automatonOf(pattern: Node): LinearPattern {
  const states: State[] = []
  const add = (state: State): number => {
    if (states.length >= STATES_MAX) throw new NotLinear('it has too many states')
    return states.push(state) - 1
  }
  /** Built from the end: each part knows the state after it. */
  function build(node: Node, next: number): number {
    if (node.kind === 'char') return add({ matches: node.matches, next: [next] })
    if (node.kind === 'begin' || node.kind === 'end') return add({ condition: node.kind, next: [next] })
    if (node.kind === 'all') return node.parts.reduceRight((after, part) => build(part, after), next)
    if (node.kind === 'one of') return add({ next: node.parts.map((part) => build(part, next)) })
    return buildRepeat(node, next)
  }
  function buildRepeat({ part, min, max }: Node & { kind: 'repeat' }, next: number): number {
    let after = next
    if (max === Number.POSITIVE_INFINITY) {
      const loop = add({ next: [next] })
      states[loop]?.next.push(build(part, loop))
      after = loop
    } else for (let count = min; count < max; count++) after = add({ next: [build(part, after), next] })
    for (let count = 0; count < min; count++) after = build(part, after)
    return after
  }
  const accepted = add({ next: [] })
  const first = build(pattern, accepted)
  return { test: (text) => isFound(states, first, accepted, [...text]) }
}

function isFound(states: readonly State[], first: number, accepted: number, text: readonly string[]): boolean {
  const reach = (from: Iterable<number>, at: number): Set<number> => {
    const reached = new Set<number>()
    const left = [...from]
    for (let id = left.pop(); id !== undefined; id = left.pop()) {
      const state = states[id]
      if (!state || reached.has(id)) continue
      reached.add(id)
      const holds = state.condition === undefined || (state.condition === 'begin' ? at === 0 : at === text.length)
      if (!state.matches && holds) left.push(...state.next)
    }
    return reached
  }
  let current = reach([first], 0)
  for (let at = 0; ; at++) {
    if (current.has(accepted)) return true
    const char = text[at]
    if (char === undefined) return false
    // It may begin at any character.
    const next = [first]
    for (const id of current) if (states[id]?.matches?.(char)) next.push(...(states[id]?.next ?? []))
    current = reach(next, at + 1)
  }
}
