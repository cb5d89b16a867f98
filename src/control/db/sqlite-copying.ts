// Copies SQLite's write-ahead log into the database, beside the main thread: SQLite itself would do it within a commit, and
// everybody would wait until a thousand pages are read, written and synced (`npm run bench -- noisy`).
import { Worker } from 'node:worker_threads'
import { moduleBeside } from '../../kit/module-beside.ts'

/** Of some pages each: about as many as SQLite lets come together. */
const COMMITS = 200
/**
 * Where others commit all the time, the thread never comes to the log's end, and the log cannot begin anew. SQLite copies what
 * little is left by then, within a commit.
 */
export const PAGES_AT_MOST = 8000

export interface LogCopying {
  /** Counts what has been committed; what it causes is waited for by nobody. */
  committed(): void
  /** Resolves once the thread is gone, which closes the database first: whoever closes it last removes the log. */
  end(): Promise<void>
}

export function createLogCopying(path: string): LogCopying {
  let thread: Worker | undefined
  let isCopying = false
  let commits = 0

  function start(): Worker {
    const worker = new Worker(moduleBeside(import.meta.url, 'sqlite-copying-worker'), { workerData: path })
    worker.unref()
    const end = () => {
      isCopying = false
    }
    worker.on('message', end)
    // What it has not copied stays in the log, and SQLite's own limit holds.
    worker.on('error', end)
    worker.on('exit', () => {
      end()
      if (thread === worker) thread = undefined
    })
    return worker
  }

  return {
    committed() {
      if (++commits < COMMITS || isCopying) return
      commits = 0
      isCopying = true
      thread ??= start()
      thread.postMessage('copy')
    },
    async end() {
      if (!thread) return
      const gone = new Promise<void>((resolve) => thread?.once('exit', () => resolve()))
      thread.ref()
      thread.postMessage('close')
      await gone
    },
  }
}
