// Names for a second thing beside a first: `a copy.txt`, `a copy 2.txt`, `.env copy`.
import { nameToBytes } from './sandbox/names.ts'
import { MAX_NAME_BYTES } from './sandbox/paths.ts'

const COMPOUND = /\.tar\.[a-z0-9]{1,5}$/i

/** Without end, best first. `plain` starts with the name itself. Never longer than a name may be. */
export function* freeNames(name: string, isDirectory: boolean, word: string, plain = false): Generator<string> {
  if (plain) yield name
  const extension = isDirectory ? '' : extensionOf(name)
  const whole = name.slice(0, name.length - extension.length)
  const stem = whole.replace(new RegExp(` ${word}( [0-9]{1,9})?$`), '') || whole
  for (let number = 1; ; number++) {
    const suffix = ` ${word}${number === 1 ? '' : ` ${number}`}${extension}`
    const candidate = cutTo(stem, MAX_NAME_BYTES - nameToBytes(suffix).length) + suffix
    if (candidate !== name) yield candidate
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
