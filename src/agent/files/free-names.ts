// Names for a second thing beside a first: `a copy.txt`, `a copy 2.txt`, `.env copy`.
import { nameToBytes } from './sandbox/names.ts'
import { MAX_NAME_BYTES } from './sandbox/paths.ts'

const COMPOUND = /\.tar\.[a-z0-9]{1,5}$/i

/** The names to try, best first, by their index: without end, no two alike, and none longer than a name may be. */
export type FreeNames = (index: number) => string

/** `plain` starts with the name itself. */
export function freeNames(name: string, isDirectory: boolean, word: string, plain = false): FreeNames {
  const extension = isDirectory ? '' : extensionOf(name)
  const whole = name.slice(0, name.length - extension.length)
  const numbered = new RegExp(` ${word}(?: ([0-9]{1,9}))?$`).exec(whole)
  const stem = whole.slice(0, numbered?.index) || whole
  const candidate = (number: number) => {
    const suffix = ` ${word}${number === 1 ? '' : ` ${number}`}${extension}`
    return cutTo(stem, MAX_NAME_BYTES - nameToBytes(suffix).length) + suffix
  }
  // The name itself is no name for a second thing.
  const own = numbered ? Number(numbered[1] ?? 1) : 0
  const skipped = own > 0 && candidate(own) === name ? own : Number.POSITIVE_INFINITY
  return (index) => {
    if (plain && index === 0) return name
    const number = plain ? index : index + 1
    return candidate(number < skipped ? number : number + 1)
  }
}

/** `.gz`, `.tar.gz`; nothing for `.env`, whose dot begins the name. */
export function extensionOf(name: string): string {
  const compound = COMPOUND.exec(name)
  if (compound && compound.index > 0) return compound[0]
  const dot = name.lastIndexOf('.')
  return dot > 0 && name.length - dot <= 32 ? name.slice(dot) : ''
}

function cutTo(stem: string, bytes: number): string {
  let cut = stem
  while (nameToBytes(cut).length > bytes) cut = [...cut].slice(0, -1).join('')
  return cut
}
