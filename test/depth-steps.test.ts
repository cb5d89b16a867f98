// What a path costs grows with the names in it, and not with their square: counted in calls to the file system.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createKeeper } from './faults/history/keeper.ts'
import { sendCall } from './support/call.ts'
import { killLeftovers } from './support/process.ts'

after(killLeftovers)

const down = (levels: number) => '/d'.repeat(levels)

test('a path of twice as many names takes twice as many steps, whatever is asked for', async (t) => {
  const keeper = await createKeeper('sqlite')
  t.after(() => keeper.dispose())
  await keeper.start()
  const call = async (method: string, path: string, body?: unknown) => {
    const reply = await sendCall(keeper.url, keeper.token, method, path, body === undefined ? {} : { body })
    assert.ok(reply.status < 300, `${method} ${path.slice(0, 60)}: ${reply.text}`)
    return reply
  }
  const { id } = (await call('POST', '/servers', { name: 'Castle' })).body
  const files = `/files/${id}`
  const upload: string = (await call('GET', `${files}/upload`)).body.url
  await keeper.set({ isCounting: true })
  const stepsSoFar = async () => Object.values((await keeper.seen()).sites).reduce((sum, count) => sum + count, 0)

  const WAYS: Record<string, (at: string) => Promise<unknown>> = {
    'making directories': (at) => call('POST', `${files}/folder`, { path: at, name: 'new' }),
    writing: (at) => call('PUT', `${files}/content?path=${at}/file`, 'x'),
    'writing below directories that are missing': (at) => call('PUT', `${files}/content?path=/w${at}/file`, 'x'),
    reading: (at) => call('GET', `${files}/content?path=${at}/file`),
    listing: (at) => call('GET', `${files}?path=${at}`),
    copying: (at) => call('POST', `${files}/copy`, { location: `${at}/file` }),
    moving: (at) => call('POST', `${files}/move`, { moves: [{ from: `${at}/file`, to: `${at}/moved` }] }),
    'changing a mode': (at) => call('POST', `${files}/mode`, { root: at, files: ['moved'], mode: '0600' }),
    uploading: async (at) => {
      const form = new FormData()
      form.append('files', new Blob(['x']), `up${at}/file`)
      assert.equal((await fetch(upload, { method: 'POST', body: form })).status, 200)
    },
    deleting: (at) => call('DELETE', files, { root: at, files: ['moved'] }),
  }

  const [few, more, most] = [15, 30, 60] as const
  const steps = new Map<string, number[]>()
  for (const levels of [few, more, most]) {
    // Each in a tree of its own, so that all of it is missing at first.
    const at = `/t${levels}${down(levels - 1)}`
    for (const [name, work] of Object.entries(WAYS)) {
      const before = await stepsSoFar()
      await work(at)
      steps.set(name, [...(steps.get(name) ?? []), (await stepsSoFar()) - before])
    }
  }
  for (const [name, [atFew = 0, atMore = 0, atMost = 0]] of steps) {
    assert.ok(atMore > atFew, `${name}: nothing was counted`)
    // Twice the growth where it is linear, four times where it is quadratic.
    const growth = (atMost - atMore) / (atMore - atFew)
    assert.ok(growth < 2.7, `${name}: ${atFew}, ${atMore}, ${atMost} steps`)
  }
})
