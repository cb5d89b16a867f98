// Installs a game as its template says, one step after the other. How far it came is on disk before the next step begins: after
// a crash the same task goes on from there, also with a program that ran on without us.
import { join, posix } from 'node:path'
import type { InstallWork } from '../../../contract/agent/agent-games.ts'
import { fail } from '../../../contract/errors.ts'
import type { Launch, LaunchInstallStep } from '../../../contract/games/launch.ts'
import { readRecord, writeRecord } from '../../../kit/files/durable-record.ts'
import { newId } from '../../../kit/ids.ts'
import { writeContent } from '../../files/content.ts'
import type { FilesOfAgent } from '../../files/index.ts'
import type { TaskContext } from '../../tasks.ts'
import { checkContainer } from '../container/container-options.ts'
import type { Timers } from '../power/stop-ladder.ts'
import type { GameRuntime } from '../runtime.ts'
import { runToEnd, stopRun } from './program.ts'

export interface InstallationDeps {
  files: Pick<FilesOfAgent, 'handlers' | 'list' | 'remove' | 'server'>
  runtime: GameRuntime
  gameFolder(serverId: string): string
  /** Fails with `server_running` or `server_busy`; until it is disposed of, nothing starts the game. */
  hold(serverId: string): Disposable
  /** A line in the console, for people. */
  note(serverId: string, text: string): void
  lines(serverId: string): void
  timers: Timers
  onUnexpected(error: unknown, serverId: string): void
}

export interface Installation {
  install(work: InstallWork, context: TaskContext): Promise<{ steps: number }>
  /** Ends what an installation that is given up has left running. Before the game starts. */
  abandon(serverId: string): Promise<void>
}

/** `install.json` */
interface InstallRecord {
  taskId: string
  isWiped: boolean
  stepsDone: number
  /** The program of the step that is under way. */
  runId: string | null
}

const WIPED_AT_ONCE = 1000

export function createInstallation(deps: InstallationDeps): Installation {
  const fileOf = (serverId: string) => join(deps.gameFolder(serverId), 'install.json')

  /** Into the trash. */
  async function wipe(serverId: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted()
      const { entries } = await deps.files.list({ serverId, path: '/', limit: WIPED_AT_ONCE })
      if (entries.length === 0) return
      const files = entries.map(({ name }) => name)
      await deps.files.remove({ serverId, requestId: newId('req'), root: '/', files })
    }
  }

  async function runStep(launch: Launch, work: InstallWork, context: TaskContext, saved: Saved): Promise<void> {
    const { serverId, signal, stopping } = context
    const end = await runToEnd(deps.runtime, {
      ...{ serverId, launch, limits: work.limits, signal, stopping, timers: deps.timers },
      earlierRunId: saved.record.runId,
      newRunId() {
        const runId = newId('run')
        saved.save({ runId })
        return runId
      },
      lines: () => deps.lines(serverId),
      onUnexpected: (error) => deps.onUnexpected(error, serverId),
    })
    saved.save({ runId: null })
    signal.throwIfAborted()
    if (end.code === 0) return
    const how = end.isOutOfMemory
      ? 'used more memory than it may'
      : `ended with ${end.signal ?? `exit code ${end.code}`}`
    throw fail('install_failed', `The program ${how}. The console of the server has what it said.`)
  }

  async function perform(
    step: LaunchInstallStep,
    work: InstallWork,
    context: TaskContext,
    saved: Saved,
  ): Promise<void> {
    const { serverId, taskId, signal } = context
    // What it has put in place is known by its own name after a crash.
    const own = { ...context, taskId: `${taskId}-${saved.record.stepsDone}`, report: bytesOnly(context) }
    switch (step.do) {
      case 'download': {
        const { dir: directory, base: name } = posix.parse(step.path)
        const sha256 = step.sha256 === null ? {} : { sha256: step.sha256 }
        const pull = { kind: 'files.pull' as const, url: step.url, directory, name, overwrite: true, ...sha256 }
        await deps.files.handlers['files.pull'](pull, own)
        return
      }
      case 'unpack': {
        const { path, directory } = step
        await deps.files.handlers['files.unpack']({ kind: 'files.unpack', path, directory, overwrite: true }, own)
        return
      }
      case 'write':
        await writeContent(deps.files.server(serverId), step.path, bytesOf(step.text), { overwrite: true, signal })
        return
      case 'run':
      case 'script':
        return await runStep(launchOfStep(work.launch, step), work, context, saved)
    }
  }

  async function abandon(serverId: string): Promise<void> {
    const record = readRecord<InstallRecord>(fileOf(serverId))
    if (!record || record.runId === null) return
    await stopRun(deps.runtime, { serverId, runId: record.runId })
    writeRecord(fileOf(serverId), { ...record, runId: null })
  }

  return {
    abandon,

    async install(work, context) {
      const { serverId, taskId, signal, report } = context
      using _held = deps.hold(serverId)
      for (const step of work.steps) checkStep(step, work.launch)
      // That of another task is over, but for a program that could not be ended.
      if (readRecord<InstallRecord>(fileOf(serverId))?.taskId !== taskId) await abandon(serverId)
      const saved = openRecord(fileOf(serverId), taskId)
      report({ filesTotal: work.steps.length, filesDone: saved.record.stepsDone })
      if (work.wipe && !saved.record.isWiped) {
        await wipe(serverId, signal)
        saved.save({ isWiped: true })
      }
      for (const step of work.steps.slice(saved.record.stepsDone)) {
        signal.throwIfAborted()
        const index = saved.record.stepsDone + 1
        const title = `step ${index} of ${work.steps.length}, ${describe(step)}`
        if (saved.record.runId === null) deps.note(serverId, `Installing: ${title}`)
        await perform(step, work, context, saved).catch((error: unknown) => {
          if (!signal.aborted) deps.note(serverId, `The installation failed in ${title}.`)
          throw error
        })
        saved.save({ stepsDone: index })
        report({ filesDone: index, bytesDone: 0, bytesTotal: null })
      }
      deps.note(serverId, 'Installed.')
      return { steps: work.steps.length }
    },
  }
}

interface Saved {
  record: InstallRecord
  save(change: Partial<InstallRecord>): void
}

/** That of another task is over. */
function openRecord(file: string, taskId: string): Saved {
  const found = readRecord<InstallRecord>(file)
  const fresh: InstallRecord = { taskId, isWiped: false, stepsDone: 0, runId: null }
  const saved: Saved = {
    record: found?.taskId === taskId ? found : fresh,
    save(change) {
      saved.record = { ...saved.record, ...change }
      writeRecord(file, saved.record)
    },
  }
  return saved
}

/** Before anything is touched. */
function checkStep(step: LaunchInstallStep, launch: Launch): void {
  if (step.do === 'run' && launch.container !== null) checkContainer(launch.container)
  if (step.do !== 'script') return
  if (launch.container === null)
    throw fail(
      'install_failed',
      'The template installs by a script, which only runs in a container. Choose the runtime container for the server.',
    )
  checkContainer({ ...launch.container, image: step.image })
}

function launchOfStep(launch: Launch, step: Extract<LaunchInstallStep, { do: 'run' | 'script' }>): Launch {
  const quiet = { shellLine: null, ready: [], stopsByItself: [], ports: [], configFiles: [], requires: [] }
  if (step.do === 'run') return { ...launch, ...quiet, workingDirectory: '/', argv: step.args }
  const { image, entrypoint, text: script } = step
  const container = { image, directory: '/mnt/server', capabilities: [], installer: { entrypoint, script } }
  return { ...launch, ...quiet, workingDirectory: '/', argv: [entrypoint], container }
}

/** What is in a line of the console: never a value, which may be a secret. */
function describe(step: LaunchInstallStep): string {
  switch (step.do) {
    case 'run':
      return `run ${step.args[0]}`
    case 'script':
      return `script in ${step.image}`
    default:
      return `${step.do} ${step.path}`
  }
}

/** Files are counted by steps. */
const bytesOnly =
  ({ report }: TaskContext): TaskContext['report'] =>
  ({ bytesDone, bytesTotal }) =>
    report({ ...(bytesDone === undefined ? {} : { bytesDone }), ...(bytesTotal === undefined ? {} : { bytesTotal }) })

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}
