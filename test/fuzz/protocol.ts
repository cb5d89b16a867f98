// What the fuzzer and the thread that runs the target say to each other.

export interface WorkerSetup {
  target: string
  /** The input that runs now. */
  current: SharedArrayBuffer
}

export type ToWorker =
  | { kind: 'replay'; inputs: Uint8Array[] }
  | { kind: 'minimise'; input: Uint8Array; fault: string }
  | { kind: 'fuzz'; seed: number; seeds: Uint8Array[]; untilMs: number }

export type FromWorker =
  | { kind: 'ready' }
  /** One input of a replay, in order. */
  | { kind: 'ran'; fault: string | undefined }
  /** Of a minimisation, each smaller than the one before. */
  | { kind: 'finding'; input: Uint8Array; fault: string }
  /** It reached something that nothing before it had. */
  | { kind: 'kept'; input: Uint8Array }
  | { kind: 'progress' | 'done'; runs: number; blocks: number; kept: number }

const BYTES_MAX = 1024 * 1024
const HEADER_BYTES = 8

export const newCurrentInput = () => new SharedArrayBuffer(HEADER_BYTES + BYTES_MAX)

export function createCurrentInput(memory: SharedArrayBuffer) {
  const header = new Int32Array(memory, 0, 2)
  const bytes = new Uint8Array(memory, HEADER_BYTES)
  return {
    set(input: Uint8Array): void {
      bytes.set(input.subarray(0, BYTES_MAX))
      header[1] = Math.min(input.length, BYTES_MAX)
      Atomics.add(header, 0, 1)
    },
    get: () => Buffer.from(bytes.slice(0, header[1])),
    /** Changes with every input. */
    sequence: () => Atomics.load(header, 0),
  }
}

/** What two inputs have in common that show the same fault: numbers and ids differ from one to the next. */
export const sameFault = (fault: string) => fault.replace(/[0-9a-z]{24,}|\d+/g, '#').slice(0, 120)
