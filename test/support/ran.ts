// What a process said, and how it ended.
import type { ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'

export interface Ran {
  code: number
  stdout: string
  stderr: string
}

export async function ranOf(child: ChildProcessByStdio<null, Readable, Readable>): Promise<Ran> {
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const [code] = await once(child, 'close')
  return { code, stdout, stderr }
}
