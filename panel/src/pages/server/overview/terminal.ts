// The terminal that shows a console. It only shows: what is typed goes through the field below it.
import { FitAddon } from '@xterm/addon-fit'
import { SearchAddon } from '@xterm/addon-search'
import { Terminal } from '@xterm/xterm'
import type { ConsoleLine } from '../../../../../src/sdk/index.ts'
import '@xterm/xterm/css/xterm.css'
import { allowSpanStyles, createCspDocument, openAllowed } from '../../../components/csp-document.ts'
import type { ConsoleSink } from './console-feed.ts'
import { terminalText } from './terminal-text.ts'

/** Lines that are kept here; older ones stay with the service. */
export const LINES_AT_MOST = 20_000
/** Some lines take several rows. */
const ROWS_AT_MOST = 30_000
/** In the stream and not by a call: what was written before has to be there before it goes. */
const RESET = '\u001bc'

export interface ConsoleTerminal extends ConsoleSink {
  /** `wrapped`: it began again at the other end. */
  find(text: string, direction: 'next' | 'previous'): 'found' | 'wrapped' | 'missing'
  /** Brings a line into sight and marks it. Counted from the newest, which is 0. */
  show(linesAfter: number): void
  selection(): string
  follow(): void
  dispose(): void
}

interface Options {
  locale: string
  /** Whether the newest line is in sight. */
  onFollowing(isFollowing: boolean): void
  /** The oldest line has come into sight. */
  onTop(): void
}

export function createTerminal(host: HTMLElement, { locale, onFollowing, onTop }: Options): ConsoleTerminal {
  const terminal = openTerminal(host)
  const fit = new FitAddon()
  const search = new SearchAddon()
  terminal.loadAddon(fit)
  terminal.loadAddon(search)
  allowSpanStyles()
  openAllowed(() => terminal.open(host))
  fit.fit()
  // Tab must leave the terminal, which takes no input; finding and copying are the browser's.
  terminal.attachCustomKeyEventHandler(
    (event) => event.key !== 'Tab' && !((event.ctrlKey || event.metaKey) && ['c', 'f', 'k'].includes(event.key)),
  )
  const sizes = new ResizeObserver(() => fit.fit())
  sizes.observe(host)
  let wasAtTop = false
  const tellPlace = () => {
    const { viewportY, baseY } = terminal.buffer.active
    onFollowing(viewportY >= baseY)
    const isAtTop = viewportY === 0 && baseY > 0
    if (isAtTop && !wasAtTop) onTop()
    wasAtTop = isAtTop
  }
  // Whatever moves the view, by wheel, key or bar, draws it anew; not all of it is told as a scroll.
  terminal.onRender(tellPlace)

  const time = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })
  const text = (lines: readonly ConsoleLine[]) =>
    lines.map((line) => `${terminalText(line, (at) => time.format(at))}\r\n`).join('')
  return {
    append: (lines) => terminal.write(text(lines)),
    replace: (lines, firstShown) =>
      new Promise((resolve) => {
        terminal.write(RESET + text(lines), () => {
          if (firstShown !== undefined) terminal.scrollToLine(rowOf(terminal, lines.length - 1 - firstShown))
          tellPlace()
          resolve()
        })
      }),
    find(wanted, direction) {
      const before = terminal.getSelectionPosition()?.start.y
      const isFound = direction === 'next' ? search.findNext(wanted) : search.findPrevious(wanted)
      const after = terminal.getSelectionPosition()?.start.y
      if (!isFound || after === undefined) return 'missing'
      if (before === undefined || before === after) return before === undefined ? 'found' : 'wrapped'
      return after > before === (direction === 'next') ? 'found' : 'wrapped'
    },
    show(linesAfter) {
      const row = rowOf(terminal, linesAfter)
      terminal.scrollToLine(Math.max(0, row - Math.floor(terminal.rows * 0.7)))
      terminal.select(0, row, terminal.cols)
    },
    selection: () => terminal.getSelection(),
    follow: () => terminal.scrollToBottom(),
    dispose() {
      sizes.disconnect()
      terminal.dispose()
    },
  }
}

function openTerminal(host: HTMLElement): Terminal {
  const style = getComputedStyle(host)
  return new Terminal({
    documentOverride: createCspDocument(),
    disableStdin: true,
    cursorInactiveStyle: 'none',
    convertEol: true,
    fontFamily: style.getPropertyValue('--mantine-font-family-monospace'),
    fontSize: 13,
    lineHeight: 1.35,
    scrollback: ROWS_AT_MOST,
    scrollSensitivity: 2,
    screenReaderMode: false,
    theme: {
      background: style.getPropertyValue('--console-ground').trim(),
      foreground: '#dbe4df',
      cursor: 'transparent',
      selectionBackground: '#3b6b56',
    },
  })
}

/** A line that is wider than the terminal takes several rows, so rows are counted from the newest line up. */
function rowOf(terminal: Terminal, linesAfter: number): number {
  const { active } = terminal.buffer
  let left = linesAfter
  for (let row = active.baseY + active.cursorY - 1; row >= 0; row--) {
    if (active.getLine(row)?.isWrapped) continue
    if (left === 0) return row
    left--
  }
  return 0
}
