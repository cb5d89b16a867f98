// Loaded into the service under test by `node --import`, never in production: says on standard error which turns of the
// event loop were too long, from the moment in which the service listens. Starting, with its modules, is not watched.
import { Server } from 'node:net'
import { isMainThread } from 'node:worker_threads'
import { watchTurns } from './turns.ts'

export const LONG_TURN = 'watchdog: a turn of the event loop took'

function watch(): void {
  watchTurns(({ cpuMs, stack }) => process.stderr.write(`${LONG_TURN} ${cpuMs} ms\n${stack}\n`))
}

if (isMainThread) {
  const { listen } = Server.prototype
  Server.prototype.listen = function (this: Server, ...args: unknown[]) {
    Server.prototype.listen = listen
    this.once('listening', watch)
    return listen.apply(this, args as Parameters<typeof listen>)
  }
}
