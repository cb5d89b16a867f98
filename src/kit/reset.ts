// Ends a connection at once, without a goodbye.
import type { Socket } from 'node:net'

/**
 * Instead of `resetAndDestroy`: while the end of a connection is under way, Node 26 does not reset it and does not close it either.
 * Its descriptor would be lost, and the process could not end by itself any more.
 */
export function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
