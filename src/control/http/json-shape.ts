// Measures a JSON text before it is parsed: a megabyte of brackets takes a second to parse, and a megabyte of small
// values as long to validate.
import { JSON_TOKENS_MAX } from '../../contract/fixed-limits.ts'

const [QUOTE, BACKSLASH, COMMA, OPEN_LIST, OPEN] = [0x22, 0x5c, 0x2c, 0x5b, 0x7b]

/** Whether the text has more in it than any request needs. What is not JSON has any answer. */
export function hasTooManyTokens(text: Uint8Array): boolean {
  if (text.length <= JSON_TOKENS_MAX) return false
  let tokens = 0
  for (let at = 0; at < text.length && tokens <= JSON_TOKENS_MAX; at++) {
    const byte = text[at]
    if (byte === QUOTE || byte === COMMA || byte === OPEN || byte === OPEN_LIST) tokens++
    if (byte === QUOTE) at = endOfString(text, at)
  }
  return tokens > JSON_TOKENS_MAX
}

/** Of the quote that ends it: one with an even number of backslashes before it. */
function endOfString(text: Uint8Array, start: number): number {
  for (let at = start + 1; ; at++) {
    at = text.indexOf(QUOTE, at)
    if (at === -1) return text.length
    let first = at
    while (text[first - 1] === BACKSLASH) first--
    if ((at - first) % 2 === 0) return at
  }
}
