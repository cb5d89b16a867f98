// How an egg stops its game: a command, or a signal with a caret before it.
import type { Template } from '../../contract/games/template-format.ts'
import type { EggReader } from './egg-reader.ts'

const PATH = ['config', 'stop']
const PATIENCE_SECONDS = 120
const LAST_SECONDS = 30
const BY_SIGNAL = 'then SIGTERM, and only then SIGKILL'

type Stop = Template['stop']
type Signal = NonNullable<Stop[number]['signal']>

const SIGNALS: Readonly<Record<string, Signal>> = {
  '^C': 'SIGINT',
  '^SIGINT': 'SIGINT',
  '^SIGTERM': 'SIGTERM',
  '^SIGQUIT': 'SIGQUIT',
  '^\\': 'SIGQUIT',
}

export function importStop({ value, ledger }: EggReader): Stop {
  const stop = value(PATH)
  if (typeof stop !== 'string' || stop.trim() === '') {
    if (stop !== undefined && stop !== null && stop !== '')
      ledger.dropped(PATH, 'must be text: SIGTERM is sent instead')
    return bySignal('SIGTERM')
  }
  const text = stop.trim()
  const known = Object.hasOwn(SIGNALS, text.toUpperCase()) ? SIGNALS[text.toUpperCase()] : undefined
  if (known !== undefined) {
    ledger.changed(PATH, `${text} is ${known}, ${BY_SIGNAL}`)
    return bySignal(known)
  }
  if (text.startsWith('^')) {
    ledger.changed(PATH, `${text.slice(0, 50)} is sent as SIGINT, ${BY_SIGNAL}; elsewhere it ends in SIGKILL`)
    return bySignal('SIGINT')
  }
  if (/[\p{Cc}\u2028\u2029]/u.test(text) || !text.isWellFormed() || text.length > 1000) {
    ledger.dropped(PATH, 'is no command of one line: SIGTERM is sent instead')
    return bySignal('SIGTERM')
  }
  if (text === stop) ledger.carried(PATH)
  else ledger.changed(PATH, 'has no blanks around it')
  return [
    { command: text, timeoutSeconds: PATIENCE_SECONDS },
    { signal: 'SIGTERM', timeoutSeconds: LAST_SECONDS },
  ]
}

function bySignal(signal: Signal): Stop {
  const first = { signal, timeoutSeconds: PATIENCE_SECONDS }
  return signal === 'SIGTERM' ? [first] : [first, { signal: 'SIGTERM', timeoutSeconds: LAST_SECONDS }]
}
