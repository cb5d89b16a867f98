// Both adapters of the runtime port as one: a launch says which of them runs it, and the disk which of them ran it.
import type { ContainerRuntime } from './container/container-runtime.ts'
import type { GameRuntime } from './runtime.ts'

export function createRuntimes(runtimes: { process: GameRuntime; container: ContainerRuntime }): GameRuntime {
  const { process, container } = runtimes
  return {
    check: (request) => (request.launch.container ? container : process).check(request),
    start: (request, events) => (request.launch.container ? container : process).start(request, events),
    find: (request, events) => (container.isOwn(request) ? container : process).find(request, events),
  }
}
