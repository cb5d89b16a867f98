// A line of the console as the terminal is given it. The text is whatever the game, or a player through it, has written: of its
// control characters only colours are kept, so that no line can move over another, set a title or reach the clipboard.
import type { ConsoleLine } from '../../../../../src/sdk/index.ts'

const RESET = '\u001b[0m'
const FAINT = '\u001b[38;5;245m'
// A game can write its own text in these too, with the same signs before it; it cannot reach the time, which has their colour.
const [NOTE, NOTE_TIME] = ['\u001b[3;38;5;109m', '\u001b[38;5;109m']
const [COMMAND, COMMAND_TIME] = ['\u001b[1;38;5;114m', '\u001b[38;5;114m']
const FAULT = '\u001b[38;5;217m'

const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
  /\u001b\[[0-?]*[ -/]*[@-~]?|\u001b[\]PX^_][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|\u001b[^[\]PX^_]?|[\u0000-\u0008\u000a-\u001a\u001c-\u001f\u007f-\u009f]/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above
const COLOUR = /^\u001b\[[0-9;:]*m$/

/** Of which 8 hides the text. The parameters of a colour by number are none of these. */
const HIDES = /(?:^|[^\d])0*8(?:[^\d]|$)/
const BY_NUMBER = /[345]8[;:](?:5[;:]\d+|2(?:[;:]+\d+){3})/g

const isColour = (found: string) => COLOUR.test(found) && !HIDES.test(found.replace(BY_NUMBER, ''))

export function onlyColours(text: string): string {
  return text.replace(CONTROLS, (found) => (isColour(found) ? found : ''))
}

/** Without colours too, for the clipboard and for the history of commands. */
export const plainText = (text: string) => text.replace(CONTROLS, '')

export function terminalText({ at, source, text }: ConsoleLine, formatTime: (at: Date) => string): string {
  const time = `${formatTime(new Date(at))}${RESET} `
  if (source === 'command') return `${COMMAND_TIME}${time}${COMMAND}› ${plainText(text)}${RESET}`
  if (source === 'gamekeeper') return `${NOTE_TIME}${time}${NOTE}${plainText(text)}${RESET}`
  return `${FAINT}${time}${source === 'stderr' ? FAULT : ''}${onlyColours(text)}${RESET}`
}
