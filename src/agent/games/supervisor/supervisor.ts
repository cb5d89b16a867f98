// A process of its own beside each game. It outlives the service, so a game is stopped by nothing but a wish to stop it: it
// holds the game's input and output, writes the console, and writes down how the game ended. It is told on its standard input
// what to start, and works in the game's folder, where its socket is. It loads as little code as it can.
import { unlinkSync, writeSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { CONSOLE_INPUT_MAX_BYTES } from '../../../contract/fixed-limits.ts'
import { Descriptor } from '../../../kit/files/descriptor.ts'
import { claimRecord, readRecord, writeRecord } from '../../../kit/files/durable-record.ts'
import { hasCode, ignoreAbsent } from '../../../kit/files/errno.ts'
import { openConsoleWriter } from '../console/console-writer.ts'
import { createLineMatcher } from '../console/line-pattern.ts'
import { createLineSplitter } from '../console/line-splitter.ts'
import { identify, type ProcessIdentity, signalGroup } from '../process-identity.ts'
import { dropGroups, enterGroups } from './cgroup-entry.ts'
import { type GameEvents, type GameProcess, startGame } from './game-process.ts'
import { isOwner } from './ownership.ts'
import { holdPipes, type PipedGame } from './piped-game.ts'
import {
  createMessageReader,
  exitFile,
  type GameEnd,
  type Message,
  type OwnershipAnswer,
  type Preparation,
  type Request,
  type RunEnd,
  type RunRecord,
  type RunStatus,
  runFile,
  SOCKET,
  type StartAnswer,
  type SupervisorInput,
  type SupervisorOrder,
  uptimeMs,
} from './protocol.ts'
import { createStopWord } from './stop-word.ts'

const ANSWER_FD = 3
const TELL_EVERY_MS = 10
const SYNC_EVERY_MS = 1000
const RETRY_MS = 1000
const PRUNE_EVERY_MS = 3_600_000
const EXIT_WITHIN_MS = 2000
/** What a service that does not read may leave unread before it is cut off. */
const UNREAD_MAX_BYTES = 256 * 1024

const answerTo = new Descriptor(ANSWER_FD)

function say(said: StartAnswer | OwnershipAnswer): void {
  if (!answerTo.isOpen) return
  try {
    writeSync(answerTo.fd, `${JSON.stringify(said)}\n`)
  } catch {
    // The service is gone. The game is not.
  }
}

/** The first answer counts. */
function answer(said: StartAnswer): void {
  say(said)
  answerTo[Symbol.dispose]()
}

function main(order: SupervisorOrder): void {
  const record: RunRecord = {
    runId: order.runId,
    supervisor: identify(process.pid) as ProcessIdentity,
    game: null,
    cgroups: 'cgroups' in order ? order.cgroups : [],
    user: 'user' in order ? order.user : null,
  }
  if ('isSuccessor' in order && order.isSuccessor) succeed(record)
  else if (!claimRecord(runFile(order.runId), record)) {
    dropGroups(record.cgroups)
    process.exit(0)
  }
  const console = openConsoleWriter(order.consoleFolder, Date.now)
  const status: RunStatus = {
    runId: order.runId,
    tail: console.lastLine,
    isReady: record.isReady || order.ready.length === 0,
    end: null,
  }
  const ready = createLineMatcher(order.ready)
  const splitters = { stdout: createLineSplitter(), stderr: createLineSplitter() }
  const clients = new Set<Socket>()
  const isPiped = 'pipesFolder' in order
  let lastLine: number | null = null
  const stopWord = createStopWord(createLineMatcher(order.stopsByItself))
  let telling: NodeJS.Timeout | undefined
  let keeping: NodeJS.Timeout | undefined

  function tell(message: Message): void {
    const line = `${JSON.stringify(message)}\n`
    for (const client of clients) {
      client.write(line)
      if (client.writableLength > UNREAD_MAX_BYTES) client.destroy()
    }
  }

  function note(source: 'command' | 'gamekeeper', words: string): void {
    console.write(source, [Buffer.from(words)])
    tellTail()
  }

  function tellTail(): void {
    status.tail = console.lastLine
    telling ??= setTimeout(() => {
      telling = undefined
      tell({ tail: status.tail })
    }, TELL_EVERY_MS)
  }

  function hear(source: 'stdout' | 'stderr', lines: Buffer[]): void {
    if (lines.length === 0) return
    console.write(source, lines)
    lastLine = console.lastLine
    stopWord.hear(lines)
    tellTail()
    if (status.isReady || !lines.some(ready.matches)) return
    status.isReady = true
    tell({ status })
    if (isPiped) keep({ isReady: true })
  }

  /** A disk that takes nothing must not end whoever holds the game's output: it is written once it does. */
  function keep(change: Partial<RunRecord>): void {
    Object.assign(record, change)
    try {
      writeRecord(runFile(order.runId), record)
    } catch {
      clearTimeout(keeping)
      keeping = setTimeout(() => keep({}), RETRY_MS).unref()
    }
  }

  function finish(end: GameEnd): void {
    for (const source of ['stdout', 'stderr'] as const) hear(source, splitters[source].end())
    note('gamekeeper', describeEnd(end))
    console.sync()
    status.end = { ...end, at: Date.now(), wasReady: status.isReady, saidStop: stopWord.isLast(), lastLine }
    tell({ status })
    answer({ started: true })
    clearInterval(syncing)
    clearInterval(pruning)
    clearTimeout(telling)
    const sayGoodbye = () => {
      for (const client of clients) client.end()
    }
    sayGoodbye()
    // A service that comes back before the end is on disk hears of it here.
    const leave = () => {
      server.close()
      sayGoodbye()
      // Where something still holds the game's output open, it would be read for ever.
      setTimeout(() => process.exit(0), EXIT_WITHIN_MS).unref()
    }
    writeEnd(exitFile(order.runId), status.end, leave)
  }

  const OBEY: { [Op in Request['op']]: (request: Extract<Request, { op: Op }>) => 'gone' | 'full' | null } = {
    input({ text: line, notAfter = Number.POSITIVE_INFINITY }) {
      if (uptimeMs() > notAfter) return 'full'
      const error = (piped ?? game)?.input(`${line}\n`) ?? null
      if (error === null) note('command', line)
      return error
    },
    signal: ({ signal }) => (game?.signal(signal) ? null : 'gone'),
    begin() {
      // Before anything that it says.
      if (piped?.begin()) note('gamekeeper', 'Started.')
      return null
    },
    note({ text: words }) {
      note('gamekeeper', words)
      return null
    },
    leader({ game: leader }) {
      keep({ game: leader })
      return null
    },
    ended({ end }) {
      void piped?.end(end)
      return null
    },
    quit: () => process.exit(0),
  }
  const obey = (request: Request): Message => ({ reply: request.id, error: OBEY[request.op](request as never) })

  const server = createServer((client) => {
    clients.add(client)
    client.once('close', () => clients.delete(client))
    client.on('error', () => client.destroy())
    client.setEncoding('utf8')
    const read = createMessageReader<Request>((request) => client.write(`${JSON.stringify(obey(request))}\n`))
    client.on('data', (chunk: string) => {
      try {
        read(chunk)
      } catch {
        client.destroy()
      }
    })
    client.write(`${JSON.stringify({ status })}\n`)
  })

  const events: GameEvents = {
    started() {
      keep({ game: game?.leader() ?? null })
      answer({ started: true })
    },
    failed(error) {
      answer({ started: false, code: error.code ?? 'UNKNOWN', message: error.message })
      finish({ code: null, signal: null, isOutOfMemory: false, hasBegun: false })
    },
    output: (source, chunk) => hear(source, splitters[source].push(chunk)),
    ended: finish,
  }
  let game: GameProcess | undefined
  let piped: PipedGame | undefined
  if ('pipesFolder' in order) {
    piped = holdPipes(order.pipesFolder, CONSOLE_INPUT_MAX_BYTES, events)
    if (order.isSuccessor) piped.begin()
    answer({ started: true })
  } else {
    game = startGame(order, CONSOLE_INPUT_MAX_BYTES, events)
    note('gamekeeper', 'Started.')
  }
  const killGame = () => (game ? game.signal('SIGKILL') : record.game && signalGroup(record.game, 'SIGKILL'))
  if (order.killAfterMs !== undefined) setTimeout(killGame, order.killAfterMs).unref()
  const syncing = setInterval(() => console.sync(), SYNC_EVERY_MS)
  const pruning = setInterval(() => console.prune(), PRUNE_EVERY_MS)
  try {
    unlinkSync(SOCKET)
  } catch (error) {
    ignoreAbsent(error)
  }
  server.listen(SOCKET)
}

/** The last one has ended: the record is this one's now, with what it knew. */
function succeed(record: RunRecord): void {
  const { game = null, isReady = false } = readRecord<RunRecord>(runFile(record.runId)) ?? {}
  Object.assign(record, { game, isReady })
  writeRecord(runFile(record.runId), record)
}

/** Until the disk takes it: how a game ended is not known anywhere else. */
function writeEnd(file: string, end: RunEnd, done: () => void): void {
  try {
    writeRecord(file, end)
  } catch (error) {
    // Where the folder itself is gone, so is whoever could ask.
    if (!hasCode(error, 'ENOENT')) return void setTimeout(() => writeEnd(file, end, done), RETRY_MS)
  }
  done()
}

function describeEnd({ code, signal, isOutOfMemory }: GameEnd): string {
  if (isOutOfMemory) return 'Ended by the kernel: it used more memory than it may.'
  return signal ? `Ended by ${signal}.` : `Ended with exit code ${code ?? 'unknown'}.`
}

function prepare({ groups, ownership }: Preparation): void {
  // Before the groups are entered: it is none of the game's.
  if (ownership) void isOwner(ownership).then((isTheirs) => say({ isOwner: isTheirs }))
  enterGroups(groups)
}

async function readInput(): Promise<SupervisorInput | undefined> {
  let unread = ''
  let prepared: Preparation | undefined
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    unread += chunk
    const end = unread.indexOf('\n')
    if (prepared || end < 0) continue
    prepared = JSON.parse(unread.slice(0, end)) as Preparation
    unread = unread.slice(end + 1)
    prepare(prepared)
  }
  if (unread !== '') return JSON.parse(unread)
  dropGroups(prepared?.groups ?? [])
  return undefined
}

// A terminal that closes, or a machine that shuts down, means the game: it is told by the same signal.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGPIPE'] as const) process.on(signal, () => {})
const input = await readInput()
// Nobody has an order for it any more.
if (!input) process.exit(0)
const { folder, order } = input
process.chdir(folder)
main(order)
