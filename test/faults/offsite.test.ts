import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, it } from 'node:test'
import { snapshot } from '../../src/agent/backups/backups.testing.ts'
import { namesIn } from '../../src/blobs/store.testing.ts'
import { needs } from '../support/needs.ts'
import { createRandom } from './history/random.ts'
import { troubleOffsite } from './offsite/main.ts'
import { areMade, areStored, createWorld, liveDir, untilBackups, untilKilled, watchSending } from './offsite/world.ts'

describe('a bucket in trouble', needs('versitygw'), () => {
  it('everything that was said to be stored restores from the bucket alone', async (t) => {
    await troubleOffsite(3, (line) => t.diagnostic(line), ['--seed', '302'])
  })

  it('a service that is killed in the middle of sending goes on, and sends nothing that is there already', async () => {
    const world = await createWorld(createRandom(1), { isEncrypted: false })
    try {
      await world.start()
      world.serverId = (await world.http.call('POST', '/servers', { name: 'Castle' })).body.id
      // Four blobs are there, and the next is on its way.
      let arrived = 0
      const note = (status: number) => void (status === 200 && arrived++)
      world.proxy.trouble = ({ method, url }) => {
        if (method !== 'PUT' || !/\/(?:packs|index|parts|manifests)\//.test(url)) return undefined
        if (arrived < 4) return { kind: 'before-answer', work: note }
        void world.kill()
        return { kind: 'cut-request', afterBytes: 100_000 }
      }
      await untilKilled(world, async () => {
        for (const name of ['one', 'two', 'three']) {
          writeFileSync(join(world.files(), 'region'), randomBytes(400_000))
          world.trees.set(name, snapshot(world.files()))
          await world.http.call('POST', `/backups/${world.serverId}`, { name })
          await untilBackups(world, areMade)
        }
        await untilBackups(world, areStored)
      })
      await world.kill()
      const before = namesIn(liveDir(world), '')
      assert.ok(arrived >= 4)
      world.proxy.trouble = () => undefined
      const watch = watchSending(world)
      const from = world.proxy.seen.length
      await world.start()
      await untilBackups(world, (backups) => areMade(backups) && areStored(backups))
      await world.kill()
      watch.assertNothingTwice()
      const again = world.proxy.seen.slice(from).filter(({ method }) => method === 'PUT')
      const names = again.map(({ url }) => basename(url.split('?')[0] ?? ''))
      assert.ok(names.length > 1, 'the rest was sent')
      assert.ok(before.length >= 6, `${before} were there`)
    } finally {
      await world.stop()
    }
  })
})
