import { fail } from '../../contract/errors.ts'

/** The media type to answer with: the best of `offered` that the caller accepts, by default the first of them. */
export function negotiate<const T extends string>(accept: string | undefined, offered: readonly [T, ...T[]]): T {
  if (accept === undefined || accept.trim() === '') return offered[0]
  const ranges = accept.split(',').map(parseRange)
  let best: { type: T; quality: number } | undefined
  for (const type of offered) {
    const quality = qualityOf(type, ranges)
    if (quality > (best?.quality ?? 0)) best = { type, quality }
  }
  if (best) return best.type
  throw fail('not_acceptable', `It is available as ${offered.join(', ')}.`)
}

interface Range {
  type: string
  quality: number
}

function parseRange(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const quality = parameters.find((parameter) => parameter.startsWith('q='))
  const value = quality === undefined ? 1 : Number(quality.slice(2))
  return { type, quality: Number.isFinite(value) ? value : 0 }
}

/** The most specific range that covers the type decides, as RFC 9110 has it. */
function qualityOf(type: string, ranges: readonly Range[]): number {
  const family = `${type.split('/')[0]}/*`
  for (const wanted of [type, family, '*/*']) {
    const range = ranges.find((candidate) => candidate.type === wanted)
    if (range) return range.quality
  }
  return 0
}
