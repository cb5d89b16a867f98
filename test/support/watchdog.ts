// Loaded into the service under test by `node --import`, never in production: says on standard error which turns of the
// event loop were too long, from the moment in which the service takes requests. Starting, with its modules, is not watched.
import { Server as HttpServer } from 'node:http'
import { Server } from 'node:net'
import { isMainThread } from 'node:worker_threads'
import { sayLongTurn, watchTurns } from './turns.ts'

function watch(): void {
  watchTurns((turn) => process.stderr.write(sayLongTurn(turn)))
}

if (isMainThread) {
  const { listen } = Server.prototype
  Server.prototype.listen = function (this: Server, ...args: unknown[]) {
    if (this instanceof HttpServer) this.once('listening', watch)
    return listen.apply(this, args as Parameters<typeof listen>)
  }
}
