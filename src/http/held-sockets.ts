// HTTP sockets whose reading is suspended for a while. Pausing them is not enough: Node resumes them whenever somebody
// reads a body, at the end of every request, and once more if that was requested before they were paused.
import type { Socket } from 'node:net'

/** Held twice, it has to be released twice. */
export function holdSocket(socket: Socket): void {
  socket.pause().on('resume', stayPaused)
}

export function releaseSocket(socket: Socket): void {
  socket.off('resume', stayPaused)
}

function stayPaused(this: Socket): void {
  this.pause()
}
