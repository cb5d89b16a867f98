// Ctrl-R, as in a shell: what is typed is looked for in earlier commands, the newest first. Keys pass through here on their way to
// `readline`, which has a history and no search.
import { clearLine, cursorTo, emitKeypressEvents, type Interface, type Key } from 'node:readline'
import { PassThrough, type Readable, type Writable } from 'node:stream'

/** Up to the first match from an index on; -1 where there is none. */
export const findCommand = (history: readonly string[], text: string, from = 0): number =>
  history.findIndex((command, index) => index >= from && command.includes(text))

export interface SearchableInput {
  /** For `readline`. */
  input: Readable
  /** Must be called once `readline` has it. `history`: the newest first. */
  attach(lines: Interface, history: string[]): void
  close(): void
}

export interface Terminal {
  stdin: Readable & { isTTY?: boolean; setRawMode?: (isRaw: boolean) => unknown }
  output: Writable
}

export function createSearchableInput({ stdin, output }: Terminal): SearchableInput {
  const input = new PassThrough()
  let lines: Interface | undefined
  let commands: readonly string[] = []
  /** While somebody searches. */
  let search: { text: string; index: number } | undefined

  function show({ text, index }: { text: string; index: number }): void {
    cursorTo(output, 0)
    clearLine(output, 0)
    output.write(`(search) ${text}: ${commands[index] ?? ''}`)
  }

  function look(text: string, from: number): void {
    const index = findCommand(commands, text, from)
    // What was found last stays where there is nothing more.
    search = { text, index: index < 0 ? (search?.text === text ? search.index : -1) : index }
    show(search)
  }

  /** What was found is in the line then, to be changed or sent. */
  function leave(isTaken: boolean): void {
    const found = search && commands[search.index]
    search = undefined
    cursorTo(output, 0)
    clearLine(output, 0)
    if (isTaken && found !== undefined) {
      lines?.write(null, { ctrl: true, name: 'e' })
      lines?.write(null, { ctrl: true, name: 'u' })
      lines?.write(found)
    } else lines?.prompt(true)
  }

  function keepSearching({ text, index }: NonNullable<typeof search>, typed: string | undefined, key: Key): boolean {
    if (key.ctrl && key.name === 'r') look(text, index + 1)
    else if (key.name === 'backspace') look(text.slice(0, -1), 0)
    else if (typed !== undefined && !key.ctrl && !key.meta && /^[^\p{Cc}]+$/u.test(typed))
      look(text + typed, Math.max(0, index))
    else return false
    return true
  }

  function press(typed: string | undefined, key: Key): void {
    if (!search) {
      if (key.ctrl && key.name === 'r') look('', 0)
      else input.write(key.sequence ?? typed ?? '')
      return
    }
    if (keepSearching(search, typed, key)) return
    const isGivenUp = key.name === 'escape' || (key.ctrl && (key.name === 'g' || key.name === 'c'))
    leave(!isGivenUp)
    if (!isGivenUp) input.write(key.sequence ?? '')
  }

  return {
    input,
    attach(made, history) {
      lines = made
      commands = history
      made.on('history', (now: string[]) => {
        commands = now
      })
      emitKeypressEvents(stdin)
      stdin.setRawMode?.(true)
      stdin.on('keypress', press)
      stdin.once('end', () => input.end())
      stdin.resume()
    },
    close() {
      stdin.off('keypress', press)
      stdin.setRawMode?.(false)
      stdin.pause()
    },
  }
}
