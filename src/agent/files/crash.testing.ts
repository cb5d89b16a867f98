// A process that changes a server's files without end, until crash.test.ts kills it. Every file's content says what it
// should be, so that half a file shows; the files of /keep are moved, deleted and brought back, never destroyed.
import { layout } from '../layout.ts'
import { pack } from './archives/pack.ts'
import { unpack } from './archives/unpack.ts'
import { writeContent } from './content.ts'
import { createAgentFiles } from './index.ts'

export const serverId = 'srv_crash'
export const KEPT = 12

export function wholeContent(label: string, size: number): string {
  return `${label}:${size}:${'x'.repeat(size)}:end`
}

export function isWhole(content: string): boolean {
  const [, size, filler, end] = content.split(':')
  return end === 'end' && filler?.length === Number(size)
}

async function work(dataDir: string): Promise<never> {
  const agent = createAgentFiles({ layout: layout(dataDir), onUnexpected: console.error })
  await agent.start()
  const server = agent.server(serverId)
  let count = 0
  const context = () => ({
    taskId: `job_${process.pid}_${++count}`,
    serverId,
    signal: new AbortController().signal,
    report: () => {},
  })
  const request = <T extends object>(fields: T) => ({ serverId, requestId: `${process.pid} ${++count}`, ...fields })
  const random = (below: number) => Math.floor(Math.random() * below)
  const body = async function* (text: string) {
    for (let at = 0; at < text.length; at += 10_000) yield Buffer.from(text.slice(at, at + 10_000))
  }
  const operations = [
    () => writeContent(server, `/w/${random(5)}`, body(wholeContent('w', random(60_000)))),
    () => agent.copy(request({ location: `/w/${random(5)}` })),
    () => agent.copy(request({ location: '/keep' })),
    () => agent.remove(request({ root: '/keep', files: [`${random(KEPT)}`] })),
    () => agent.move(request({ moves: [{ from: `/keep/${random(KEPT)}`, to: `/keep/${random(KEPT)}` }] })),
    () => agent.move(request({ moves: [{ from: `/w/${random(5)}`, to: `/v/${random(5)}` }], overwrite: true })),
    async () => {
      const { items } = await agent.listTrash({ serverId, limit: 20 })
      const item = items[random(items.length)]
      if (item) await agent.restoreTrash(request({ trashId: item.id }))
    },
    () =>
      pack(
        server,
        { kind: 'files.pack', root: '/', files: ['w'], format: 'tar', target: `/p/${random(3)}.tar` },
        context(),
      ),
    () =>
      unpack(
        server,
        { kind: 'files.unpack', path: `/p/${random(3)}.tar`, directory: '/u', overwrite: true },
        context(),
      ),
  ]
  const worker = async () => {
    // What another worker has just moved is not there: that is part of the game.
    for (;;) await operations[random(operations.length)]?.().catch(() => {})
  }
  process.send?.('ready')
  await Promise.all([worker(), worker(), worker()])
  throw new Error('never ends')
}

if (process.argv[2] === 'work' && process.argv[3]) await work(process.argv[3])
