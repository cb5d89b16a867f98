// What the kernel says of a process or a control group, in files that go with it.
import { readFileSync } from 'node:fs'

/** Empty where it is gone, or is not ours to read. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}

/** Of `/proc/<pid>/stat`, from the state on; none where there is no such process. */
export function statFields(pid: number): string[] {
  const text = readIfThere(`/proc/${pid}/stat`)
  // The name, in parentheses, may hold anything.
  return text === '' ? [] : text.slice(text.lastIndexOf(')') + 2).split(' ')
}

/** None where there is no such process. */
export const childrenOf = (pid: number): number[] =>
  readIfThere(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
