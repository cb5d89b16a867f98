// The one owner of a file descriptor. A number says nothing of whose it is: closed a second time, or used by a call that is
// still under way when it is closed, it is by then another file, of another request, perhaps of another tenant. So only
// this closes descriptors, and no stream is given one: a stream closes what it was given when it is destroyed, whatever
// `autoClose` says.
import { closeSync, open, openSync, type PathLike, read } from 'node:fs'
import { promisify } from 'node:util'

const openAsync = promisify(open)
const readAsync = promisify(read)

export class Descriptor implements Disposable {
  #number: number
  #isOpen = true
  /** Calls under way in other threads, which have the number. */
  #calls = 0

  /** Takes the number over. */
  constructor(number: number) {
    this.#number = number
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** For a call that has returned, or whose end is awaited, before this is closed: anything else goes through `use`. */
  get fd(): number {
    if (!this.#isOpen) throw new Error('a file was used after it was closed')
    return this.#number
  }

  /** The number stays this file's until the work has ended, also when it is closed meanwhile. */
  async use<T>(work: (fd: number) => Promise<T>): Promise<T> {
    const { fd } = this
    this.#calls++
    try {
      return await work(fd)
    } finally {
      this.#calls--
      this.#closeIfDone()
    }
  }

  /** Answers how many bytes there were: fewer than `length` only at the end of the file, or where a disk gives fewer. */
  async read(into: Uint8Array, offset: number, length: number, position: number): Promise<number> {
    return (await this.use((fd) => readAsync(fd, into, offset, length, position))).bytesRead
  }

  /** To somebody else, who then closes it; this one is closed by that. */
  transfer(): Descriptor {
    const { fd } = this
    if (this.#calls > 0) throw new Error('a file was handed over while it was in use')
    this.#isOpen = false
    this.#number = -1
    return new Descriptor(fd)
  }

  /** Once or often: it is closed once. */
  [Symbol.dispose](): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#closeIfDone()
  }

  #closeIfDone(): void {
    if (this.#isOpen || this.#calls > 0 || this.#number < 0) return
    const number = this.#number
    this.#number = -1
    closeSync(number)
  }
}

export function openDescriptor(path: PathLike, flags: string | number, mode?: number): Descriptor {
  return new Descriptor(openSync(path, flags, mode))
}

export async function openDescriptorAsync(path: PathLike, flags: string | number, mode?: number): Promise<Descriptor> {
  return new Descriptor(await openAsync(path, flags, mode))
}
