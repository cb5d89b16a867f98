// One name of a path against one part of a pattern that has no wildcard but `*`. A `*` takes as little as it can: the first
// place where the text between two of them is found is as good as any other, and nothing is ever tried again.
import { type CharacterClass, foldCase } from './character-class.ts'

export type Atom = { literal: string } | { any: true } | { class: CharacterClass }
export const STAR = Symbol('*')
type Token = Atom | typeof STAR

/** The name is folded already. */
export type NameGlob = (name: string) => boolean

export const hasOnlyText = (tokens: readonly Token[]) => tokens.every((token) => token === STAR || 'literal' in token)

/** Of tokens that are text and stars. */
export function compileName(tokens: readonly Token[]): NameGlob {
  const [first = '', ...others] = splitAtStars(tokens)
  const last = others.pop()
  if (last === undefined) return (name) => name === first
  const middle = others.filter((text) => text !== '')
  return (name) => {
    if (!name.startsWith(first)) return false
    let at = first.length
    for (const text of middle) {
      const found = name.indexOf(text, at)
      if (found < 0) return false
      at = found + text.length
    }
    return name.length - at >= last.length && name.endsWith(last)
  }
}

/** The text that alone matches, of a pattern that has no wildcard. */
export function literalOf(tokens: readonly Token[]): string | undefined {
  const [text, ...others] = hasOnlyText(tokens) ? splitAtStars(tokens) : []
  return others.length === 0 ? text : undefined
}

function splitAtStars(tokens: readonly Token[]): string[] {
  const texts = ['']
  for (const token of tokens) {
    if (token === STAR) texts.push('')
    else if ('literal' in token) texts.push(`${texts.pop()}${foldCase(token.literal)}`)
  }
  return texts
}

/** Whether a character of a folded name is one that the atom means. */
export function testOf(atom: Atom): (code: number) => boolean {
  if ('any' in atom) return () => true
  if ('class' in atom) return atom.class
  const wanted = foldCase(atom.literal).codePointAt(0)
  return (code) => code === wanted
}
