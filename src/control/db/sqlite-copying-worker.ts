// The thread of sqlite-copying.ts. It opens the database each time: one that stays open would keep the log from being removed
// when the service ends.
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

const path: string = workerData
/** What is committed meanwhile is left for the next one, which has less to do. */
const ROUNDS = 3

parentPort?.on('message', (order: 'copy' | 'close') => {
  if (order === 'close') return parentPort?.close()
  try {
    using db = new DatabaseSync(path)
    db.exec('pragma synchronous = normal')
    // Nobody waits for it, and it waits for nobody.
    const copy = db.prepare('pragma wal_checkpoint(passive)')
    for (let round = 0, isWhole = false; round < ROUNDS && !isWhole; round++) {
      const { log, checkpointed } = copy.get() as { log: number; checkpointed: number }
      isWhole = checkpointed === log
    }
  } catch {
    // A full or broken disk: whoever writes is told.
  }
  parentPort?.postMessage('copied')
})
