// What the kernel says of a process or a control group, in files that go with it.
import { readFileSync } from 'node:fs'
import { isOutOfDescriptors } from './errno.ts'

/** Empty where it is gone, or is not ours to read. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}

const statFile = (pid: number) => `/proc/${pid}/stat`

/** Of `/proc/<pid>/stat`, from the state on; none where there is no such process. */
export const statFields = (pid: number): string[] => fieldsOf(readIfThere(statFile(pid)))

/** The same; throws where there is no descriptor left to look with. */
export function statFieldsOrThrow(pid: number): string[] {
  try {
    return fieldsOf(readFileSync(statFile(pid), 'utf8'))
  } catch (error) {
    if (isOutOfDescriptors(error)) throw error
    return []
  }
}

/** The name, in parentheses, may hold anything. */
const fieldsOf = (text: string) => (text === '' ? [] : text.slice(text.lastIndexOf(')') + 2).split(' '))

/** None where there is no such process. */
export const childrenOf = (pid: number): number[] =>
  readIfThere(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
