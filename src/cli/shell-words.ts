// A line of bash up to the cursor, cut into the words that it stands for, and a word quoted so that it can stand there.

export interface SplitLine {
  /** Without quotes; the last is the one under the cursor, and may be empty. */
  words: string[]
  /** The quote that is open at the cursor, if any. */
  quote: string
}

/** Nothing is expanded: a variable stays its name. */
export function splitLine(line: string): SplitLine {
  const words: string[] = ['']
  let quote = ''
  let isBetween = false
  const add = (text: string) => {
    if (isBetween) words.push('')
    isBetween = false
    words.push((words.pop() ?? '') + text)
  }
  for (let at = 0; at < line.length; at++) {
    const char = line[at] ?? ''
    if (quote !== '' && char === quote) quote = ''
    else if (char === '\\' && quote !== "'") add(line[++at] ?? '')
    else if (quote === '' && (char === '"' || char === "'")) {
      quote = char
      add('')
    } else if (quote === '' && /\s/.test(char)) isBetween = true
    else add(char)
  }
  if (isBetween) words.push('')
  return { words, quote }
}

/** Where bash begins a new word of its own, whatever the line means by it. */
const BREAKS = /[:=@]/g
const PLAIN = /[^\w@%+=:,./~-]/g

/** What bash has to put in place of its own last word, so that the whole word is there. */
export function forBash(word: string, { words, quote }: SplitLine): string {
  if (quote !== '') return word
  const escaped = (text: string) => text.replace(PLAIN, '\\$&')
  const typed = escaped(words.at(-1) ?? '')
  const lastBreak = [...typed.matchAll(BREAKS)].at(-1)?.index ?? -1
  return escaped(word).slice(lastBreak + 1)
}
