// The terminal that shows a console. It only shows: what is typed goes through the field below it.
import { FitAddon } from '@xterm/addon-fit'
import { SearchAddon } from '@xterm/addon-search'
import { Terminal } from '@xterm/xterm'
import type { ConsoleLine } from '../../../../../src/sdk/index.ts'
import '@xterm/xterm/css/xterm.css'
import { createCspDocument, openAllowed } from '../../../components/csp-document.ts'
import { terminalText } from './terminal-text.ts'

/** Lines that are kept here; older ones stay with the service. */
export const LINES_AT_MOST = 10_000

export interface ConsoleTerminal {
  append(lines: readonly ConsoleLine[]): void
  /** All lines anew, such as after older ones came in front. */
  replace(lines: readonly ConsoleLine[]): void
  /** Whether there was another one. */
  find(text: string, direction: 'next' | 'previous'): boolean
  follow(): void
  dispose(): void
}

interface Options {
  locale: string
  /** Whether the newest line is in sight. */
  onFollowing(isFollowing: boolean): void
}

export function createTerminal(host: HTMLElement, { locale, onFollowing }: Options): ConsoleTerminal {
  const style = getComputedStyle(document.documentElement)
  const terminal = new Terminal({
    documentOverride: createCspDocument(),
    disableStdin: true,
    cursorInactiveStyle: 'none',
    convertEol: true,
    fontFamily: style.getPropertyValue('--mantine-font-family-monospace'),
    fontSize: 13,
    lineHeight: 1.35,
    scrollback: LINES_AT_MOST,
    screenReaderMode: false,
    theme: {
      background: style.getPropertyValue('--console-ground').trim(),
      foreground: '#dbe4df',
      cursor: 'transparent',
      selectionBackground: '#3b6b56',
    },
  })
  const fit = new FitAddon()
  const search = new SearchAddon()
  terminal.loadAddon(fit)
  terminal.loadAddon(search)
  openAllowed(() => terminal.open(host))
  fit.fit()
  // Tab must leave the terminal: it takes no input, and the page is used by keyboard.
  terminal.attachCustomKeyEventHandler((event) => event.key !== 'Tab' && !(event.ctrlKey && event.key === 'f'))
  const sizes = new ResizeObserver(() => fit.fit())
  sizes.observe(host)
  const tellFollowing = () => onFollowing(terminal.buffer.active.viewportY >= terminal.buffer.active.baseY)
  terminal.onScroll(tellFollowing)
  host.addEventListener('scroll', tellFollowing, true)
  host.addEventListener('wheel', () => requestAnimationFrame(tellFollowing), { passive: true })

  const time = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })
  const text = (lines: readonly ConsoleLine[]) =>
    lines.map((line) => `${terminalText(line, (at) => time.format(at))}\r\n`).join('')
  return {
    append: (lines) => terminal.write(text(lines)),
    replace(lines) {
      terminal.reset()
      terminal.write(text(lines), tellFollowing)
    },
    find: (wanted, direction) =>
      direction === 'next' ? search.findNext(wanted) : search.findPrevious(wanted, { incremental: false }),
    follow: () => terminal.scrollToBottom(),
    dispose() {
      sizes.disconnect()
      terminal.dispose()
    },
  }
}
