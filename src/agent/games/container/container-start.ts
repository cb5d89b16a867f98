// Makes a container and starts it, behind an init where the engine has one: the first process of a container gets no signal
// that it has no handler for, and has to see to those without a parent. No engine says truly whether it has one, so it is tried.
import { type ContainerOptions, type Engine, isUnreachable, saidByEngine } from './engine.ts'

/** Names of what engines put before a game, and words of those that miss it. */
const MISSES_INIT = /catatonit|docker-init|container-init|init binary/

/** Throws what the engine says where it does not start, and the reason of the signal. Something may be left of it then. */
export type ContainerStart = (name: string, options: ContainerOptions, signal: AbortSignal) => Promise<void>

/** One for each engine. */
export function createContainerStart(engine: Engine): ContainerStart {
  let mayHaveInit = true

  async function startOnce(name: string, options: ContainerOptions, signal: AbortSignal): Promise<void> {
    await engine.create(name, options)
    signal.throwIfAborted()
    await engine.start(name)
  }

  return async (name, options, signal) => {
    let missesInit = false
    if (mayHaveInit)
      try {
        return await startOnce(name, withInit(options), signal)
      } catch (error) {
        if (signal.aborted || isUnreachable(error)) throw error
        missesInit = MISSES_INIT.test(saidByEngine(error))
        await engine.remove(name)
        signal.throwIfAborted()
      }
    await startOnce(name, options, signal)
    // What an engine says may have names of the template's in it: that it starts without an init has to be seen.
    if (missesInit) mayHaveInit = false
  }
}

const withInit = (options: ContainerOptions): ContainerOptions => ({
  ...options,
  HostConfig: { ...options.HostConfig, Init: true },
})
