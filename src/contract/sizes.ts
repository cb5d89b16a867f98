// Sizes as people write them.

const SIZE = /^(\d+(?:\.\d+)?)\s*([kmgtp]?)(i?)(b?)$/i
const POWERS = ['', 'k', 'm', 'g', 't', 'p']

/** `20GiB` and `20G` count in 1024, `20GB` in 1000. Undefined for what is no size. */
export function parseSize(text: string): number | undefined {
  const [, number, prefix = '', binary = '', bytes = ''] = SIZE.exec(text) ?? []
  if (number === undefined) return undefined
  const base = prefix !== '' && bytes !== '' && binary === '' ? 1000 : 1024
  return Math.round(Number(number) * base ** POWERS.indexOf(prefix.toLowerCase()))
}
