// `[a-z]` and the like, and case folding: the same as in a JavaScript regular expression with the flag `i`, which
// patterns here have always followed.

/** Of a character of a folded name. */
export type CharacterClass = (code: number) => boolean

interface Range {
  from: number
  to: number
}

const ASCII = 0x80
const LAST = 0x10ffff
const code = (char: string) => char.charCodeAt(0)
const ranges = (...pairs: string[]): Range[] => pairs.map((pair) => ({ from: code(pair), to: pair.charCodeAt(1) }))

/** Within ASCII. Case is not told apart, so upper and lower are any letter. */
const NAMED = new Map<string, Range[]>(
  Object.entries({
    alnum: ranges('az', '09'),
    alpha: ranges('az'),
    blank: ranges('  ', '\t\t'),
    cntrl: [{ from: 0, to: 0x1f }, ...ranges('\x7f\x7f')],
    digit: ranges('09'),
    graph: ranges('!~'),
    lower: ranges('az'),
    print: ranges(' ~'),
    punct: ranges('!/', ':@', '[`', '{~'),
    space: ranges('  ', '\t\r'),
    upper: ranges('az'),
    xdigit: ranges('af', '09'),
  }),
)

const PLAIN = /^[ -~]*$/

export function foldCase(text: string): string {
  if (PLAIN.test(text)) return text.toLowerCase()
  let folded = ''
  for (const char of text) folded += foldChar(char)
  return folded
}

function foldChar(char: string): string {
  if (char < '\x80') return char.toLowerCase()
  const upper = char.toUpperCase()
  return char.length === 1 && upper.length === 1 && upper >= '\x80' ? upper : char
}

/** Reads the class whose `[` is at `at`. Undefined where it has no end, or a name that no class has. */
export function readClass(pattern: string, at: number): { matches: CharacterClass; end: number } | undefined {
  let index = at + 1
  const isNegated = pattern[index] === '!' || pattern[index] === '^'
  if (isNegated) index++
  const found: Range[] = []
  let before: number | undefined
  for (let isFirst = true; isFirst || pattern[index] !== ']'; isFirst = false) {
    const named = readNamed(pattern, index)
    if (named) {
      if (!named.ranges) return undefined
      found.push(...named.ranges)
      before = undefined
      index = named.end
      continue
    }
    const isRange = before !== undefined && pattern[index] === '-' && (pattern[index + 1] ?? ']') !== ']'
    const char = readChar(pattern, isRange ? index + 1 : index)
    if (!char) return undefined
    found.push({ from: isRange ? (before ?? 0) : char.code, to: char.code })
    before = isRange ? undefined : char.code
    index = char.end
  }
  return { matches: classOf(found, isNegated), end: index + 1 }
}

/** `[:alpha:]`: without ranges where no class is called so. Undefined where it is not of that form. */
function readNamed(pattern: string, at: number): { ranges: Range[] | undefined; end: number } | undefined {
  if (!pattern.startsWith('[:', at)) return undefined
  const end = pattern.indexOf(']', at + 2)
  if (end < 0) return { ranges: undefined, end: at }
  if (end < at + 3 || pattern[end - 1] !== ':') return undefined
  return { ranges: NAMED.get(pattern.slice(at + 2, end - 1)), end: end + 1 }
}

function readChar(pattern: string, at: number): { code: number; end: number } | undefined {
  const start = pattern[at] === '\\' ? at + 1 : at
  const found = pattern.codePointAt(start)
  return found === undefined ? undefined : { code: found, end: start + (found > 0xffff ? 2 : 1) }
}

function classOf(all: Range[], isNegated: boolean): CharacterClass {
  const plain = new Uint8Array(ASCII)
  for (const { from, to } of all) if (from < ASCII) plain.fill(1, from, Math.min(to + 1, ASCII))
  for (let lower = code('a'); lower <= code('z'); lower++) plain[lower] ||= plain[lower - 32] ?? 0
  const other = merged(all.filter(({ to }) => to >= ASCII))
  return (wanted) => {
    const isIn = wanted < ASCII ? plain[wanted] === 1 : other.length > 0 && isAnyWithin(other, variantsOf(wanted))
    return isIn !== isNegated
  }
}

/** By what is left of a character divided by their number: a map costs more than all else that a test does. */
const variants: ({ of: number; found: number[] } | undefined)[] = Array(4096).fill(undefined)

/** Of a folded character: all that fold to it. */
function variantsOf(wanted: number): number[] {
  const known = variants[wanted % variants.length]
  if (known?.of === wanted) return known.found
  const found = findVariants(wanted)
  variants[wanted % variants.length] = { of: wanted, found }
  return found
}

function findVariants(wanted: number): number[] {
  const char = String.fromCodePoint(wanted)
  const forms = [char, char.toLowerCase(), char.toUpperCase()].filter((form) => foldChar(form) === char)
  return forms.map((form) => form.codePointAt(0) ?? LAST)
}

function merged(all: Range[]): Range[] {
  const kept: Range[] = []
  for (const range of all.filter(({ from, to }) => from <= to).sort((a, b) => a.from - b.from)) {
    const last = kept.at(-1)
    if (last && range.from <= last.to + 1) last.to = Math.max(last.to, range.to)
    else kept.push({ ...range })
  }
  return kept
}

function isAnyWithin(sorted: Range[], wanted: number[]): boolean {
  for (const code of wanted) if (isWithin(sorted, code)) return true
  return false
}

function isWithin(sorted: Range[], wanted: number): boolean {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle]?.to ?? LAST) < wanted) low = middle + 1
    else high = middle
  }
  const range = sorted[low]
  return range !== undefined && range.from <= wanted
}
