// A hundred searches of a tenant's files at once: they wait for each other, and nobody waits for them.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { killLeftovers } from '../support/process.ts'
import { until } from '../support/until.ts'
import { attack } from './support/attack.ts'
import { openScene } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

function fillWithText(folder: string, files: number, lines: number): void {
  const content = Array.from({ length: lines }, (_, line) => `entity ${line} at ${line * 17} of the overworld`).join(
    '\n',
  )
  for (let file = 0; file < files; file++) {
    if (file % 100 === 0) mkdirSync(join(folder, `region-${file / 100}`), { recursive: true })
    writeFileSync(join(folder, `region-${Math.floor(file / 100)}`, `${file}.txt`), content)
  }
}

test('100 content searches at once', async (t) => {
  const scene = await openScene(t)
  fillWithText(scene.attacker.folder, sized(100, 3000), 5000)
  await attack(scene, async ({ call, serverId }, signal) => {
    const search = () => call('GET', `/files/${serverId}/search?content=true&q=nowhere`)
    const replies = await Promise.all(Array.from({ length: 100 }, search))
    signal.throwIfAborted()
    const refused = replies.filter(({ status }) => status === 429)
    assert.ok(refused.length > 0, 'more than may wait')
    for (const { body, headers } of refused) {
      assert.equal(body.code, 'rate_limited')
      assert.ok(Number(headers.get('retry-after')) >= 1)
    }
    const answered = replies.filter(({ status }) => status === 200)
    assert.equal(answered.length + refused.length, replies.length)
    assert.ok(answered.every(({ body }) => body.isComplete && body.data.length === 0))
  })
})

test('searches whose clients leave end, and give their places to others', async (t) => {
  const scene = await openScene(t)
  fillWithText(scene.attacker.folder, sized(100, 3000), 5000)
  await attack(scene, async ({ call, serverId, url, token }) => {
    const address = `${url}/v1/game/files/${serverId}/search?content=true&q=nowhere`
    for (let round = 0; round < sized(5, 50); round++) {
      const leaving = new AbortController()
      const begun = Array.from({ length: 10 }, () =>
        fetch(address, { headers: { authorization: `Bearer ${token}` }, signal: leaving.signal }),
      )
      await call('GET', `/files/${serverId}`)
      leaving.abort()
      await Promise.allSettled(begun)
    }
    // The service hears of a client that left a moment later than the client knows of it.
    await until(async () => (await call('GET', `/files/${serverId}/search?q=region-0`)).status === 200)
  })
})
