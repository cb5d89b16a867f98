// What xterm.js draws is hidden from screen readers, so they are given the newest lines as text: a few, and not more often than
// anybody can listen to, however many arrive.
import type { ConsoleLine } from '../../../../../src/sdk/index.ts'
import { plainText } from './terminal-text.ts'

const KEPT_LINES = 30
const EVERY_MS = 1000

export interface SpokenLines {
  add(lines: readonly ConsoleLine[]): void
  /** In the place of those that are there. */
  replace(lines: readonly ConsoleLine[]): void
  dispose(): void
}

/** `host` is a live region: what is added to it is read out. */
export function createSpokenLines(host: HTMLElement): SpokenLines {
  let waiting: ConsoleLine[] = []
  let timer: ReturnType<typeof setTimeout> | undefined

  function write(): void {
    timer = undefined
    host.append(
      ...waiting.map(({ text, source }) => {
        const line = document.createElement('p')
        line.textContent = source === 'command' ? `› ${plainText(text)}` : plainText(text)
        return line
      }),
    )
    waiting = []
    while (host.childElementCount > KEPT_LINES) host.firstElementChild?.remove()
  }

  function add(lines: readonly ConsoleLine[]): void {
    waiting = [...waiting, ...lines.slice(-KEPT_LINES)].slice(-KEPT_LINES)
    timer ??= setTimeout(write, EVERY_MS)
  }

  return {
    add,
    replace(lines) {
      host.replaceChildren()
      waiting = []
      add(lines)
    },
    dispose() {
      clearTimeout(timer)
      host.replaceChildren()
    },
  }
}
