// A process of its own beside each game. It outlives the service, so a game is stopped by nothing but a wish to stop it: it
// holds the game's input and output, writes the console, and writes down how the game ended. It starts in the game's folder,
// where its socket is; it is told what to start on its standard input, and loads as little code as it can.
import { unlinkSync, writeSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { CONSOLE_INPUT_MAX_BYTES } from '../../../contract/fixed-limits.ts'
import { Descriptor } from '../../../kit/descriptor.ts'
import { claimRecord, writeRecord } from '../../../kit/durable-record.ts'
import { hasCode, ignoreAbsent } from '../../../kit/errno.ts'
import { openConsoleWriter } from '../console/console-writer.ts'
import { createLineMatcher } from '../console/line-pattern.ts'
import { createLineSplitter } from '../console/line-splitter.ts'
import { identify, type ProcessIdentity } from '../process-identity.ts'
import { type GameEnd, type GameProcess, startGame } from './game-process.ts'
import {
  createMessageReader,
  exitFile,
  type Message,
  type Request,
  type RunEnd,
  type RunRecord,
  type RunStatus,
  runFile,
  SOCKET,
  type StartAnswer,
  type SupervisorOrder,
} from './protocol.ts'

const ANSWER_FD = 3
const TELL_EVERY_MS = 10
const SYNC_EVERY_MS = 1000
const RETRY_MS = 1000
const PRUNE_EVERY_MS = 3_600_000
/** What a service that does not read may leave unread before it is cut off. */
const UNREAD_MAX_BYTES = 256 * 1024

const answerTo = new Descriptor(ANSWER_FD)

/** The first answer counts. */
function answer(said: StartAnswer): void {
  if (!answerTo.isOpen) return
  try {
    writeSync(answerTo.fd, `${JSON.stringify(said)}\n`)
  } catch {
    // The service is gone. The game is not.
  }
  answerTo[Symbol.dispose]()
}

function main(order: SupervisorOrder): void {
  const record: RunRecord = {
    runId: order.runId,
    supervisor: identify(process.pid) as ProcessIdentity,
    game: null,
    cgroups: order.cgroups,
  }
  if (!claimRecord(runFile(order.runId), record)) process.exit(0)
  const console = openConsoleWriter(order.consoleFolder, Date.now)
  const status: RunStatus = { runId: order.runId, tail: console.lastLine, isReady: order.ready.length === 0, end: null }
  const ready = createLineMatcher(order.ready)
  const stops = createLineMatcher(order.stopsByItself)
  const splitters = { stdout: createLineSplitter(), stderr: createLineSplitter() }
  const clients = new Set<Socket>()
  let lastLine: number | null = null
  let saidStop = false
  let telling: NodeJS.Timeout | undefined

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
    saidStop ||= lines.some(stops.matches)
    tellTail()
    if (status.isReady || !lines.some(ready.matches)) return
    status.isReady = true
    tell({ status })
  }

  function finish(end: GameEnd): void {
    for (const source of ['stdout', 'stderr'] as const) hear(source, splitters[source].end())
    note('gamekeeper', describeEnd(end))
    console.sync()
    status.end = { ...end, at: Date.now(), wasReady: status.isReady, saidStop, lastLine }
    tell({ status })
    answer({ started: true })
    server.close()
    clearInterval(syncing)
    clearInterval(pruning)
    clearTimeout(telling)
    for (const client of clients) client.end()
    writeEnd(exitFile(order.runId), status.end)
  }

  function obey(request: Request): Message {
    if (request.op === 'signal') return { reply: request.id, error: game.signal(request.signal) ? null : 'gone' }
    const error = game.input(`${request.text}\n`)
    if (error === null) note('command', request.text)
    return { reply: request.id, error }
  }

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

  const game: GameProcess = startGame(order, CONSOLE_INPUT_MAX_BYTES, {
    started() {
      record.game = game.leader()
      writeRecord(runFile(order.runId), record)
      answer({ started: true })
    },
    failed(error) {
      answer({ started: false, code: error.code ?? 'UNKNOWN', message: error.message })
      finish({ code: null, signal: null, isOutOfMemory: false })
    },
    output: (source, chunk) => hear(source, splitters[source].push(chunk)),
    ended: finish,
  })
  note('gamekeeper', 'Started.')
  if (order.killAfterMs !== undefined) setTimeout(() => game.signal('SIGKILL'), order.killAfterMs).unref()
  const syncing = setInterval(() => console.sync(), SYNC_EVERY_MS)
  const pruning = setInterval(() => console.prune(), PRUNE_EVERY_MS)
  try {
    unlinkSync(SOCKET)
  } catch (error) {
    ignoreAbsent(error)
  }
  server.listen(SOCKET)
}

/** Until the disk takes it: how a game ended is not known anywhere else. */
function writeEnd(file: string, end: RunEnd): void {
  try {
    writeRecord(file, end)
  } catch (error) {
    // The folder itself is gone, and with it whoever could ask.
    if (hasCode(error, 'ENOENT')) return
    setTimeout(() => writeEnd(file, end), RETRY_MS)
  }
}

function describeEnd({ code, signal, isOutOfMemory }: GameEnd): string {
  if (isOutOfMemory) return 'Ended by the kernel: it used more memory than it may.'
  return signal ? `Ended by ${signal}.` : `Ended with exit code ${code ?? 'unknown'}.`
}

// A terminal that closes, or a machine that shuts down, means the game: it is told by the same signal.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGPIPE'] as const) process.on(signal, () => {})
main(JSON.parse(await text(process.stdin)) as SupervisorOrder)
