// A language that nobody speaks, for looking at the panel in: English with accents, a third longer, from right to left. What stays
// plain is not translated, what is cut off has no room, and what stays on the left has no direction. `localStorage`:
// gamekeeper-locale = pseudo.
import type { Messages } from '@lingui/core'

const PLAIN = 'aceinouyACEINOUY'
const ACCENTED = 'áçéíñóúýÁÇÉÍÑÓÚÝ'

const accented = (text: string) => text.replace(/[a-z]/gi, (letter) => ACCENTED[PLAIN.indexOf(letter)] ?? letter)

function pseudoText(text: string): string {
  if (text.trim() === '') return text
  return `${accented(text)}${'·'.repeat(Math.ceil(text.length / 3))}`
}

/** Of compiled messages: text is in strings, and what is filled in is in arrays. */
export function pseudoMessages(messages: Messages): Messages {
  return Object.fromEntries(
    Object.entries(messages).map(([id, message]) => [
      id,
      typeof message === 'string'
        ? pseudoText(message)
        : message.map((part) => (typeof part === 'string' && !/<\/?\d+\/?>/.test(part) ? pseudoText(part) : part)),
    ]),
  ) as Messages
}
