// The harness would notice: a byte that changed, a file that went, a stranger in the house, a service that is gone or stands
// still.
import assert from 'node:assert/strict'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { killLeftovers } from '../support/process.ts'
import { type Attack, attack } from './support/attack.ts'
import { openScene, type Scene } from './support/scene.ts'
import { TIMES } from './support/size.ts'

after(killLeftovers)

type Work = (scene: Scene) => ReturnType<Attack>

const noticed = (scene: Scene, expected: RegExp, work: Work) =>
  assert.rejects(
    attack(scene, () => work(scene)),
    expected,
  )

function someFile({ victim }: Scene): string {
  const room = join(victim.folder, 'rooms', 'r3')
  return join(room, String(readdirSync(room)[0]))
}

test('what an attack does to the victim is noticed', async (t) => {
  const scene = await openScene(t)
  const { call, victim, keeper, memory } = scene
  await t.test('nothing', () => attack(scene, async () => {}))

  await t.test('bytes of the victim that changed', () =>
    noticed(scene, /bytes|changed/, async () => writeFileSync(someFile(scene), 'not what was written')),
  )

  await t.test('a file of the victim that went', () => noticed(scene, /rooms/, async () => rmSync(someFile(scene))))

  await t.test('a service that takes more memory than it may', () =>
    noticed({ ...scene, memory: { ...memory, rssMiB: 10 } }, /MiB of memory/, async () => {}),
  )

  if (TIMES > 1)
    await t.test('a service that stands still', () =>
      noticed(scene, /slowest request took/, async () => {
        keeper.freeze()
        await delay(10_000)
        keeper.thaw()
      }),
    )

  await t.test("somebody else's entry in the victim's activity", () =>
    noticed(scene, /what others did/, async () => {
      const body = { name: 'other', scopes: ['files:write'], servers: [victim.serverId] }
      const { token } = (await call('POST', '/tokens', { body })).body
      const made = await call('POST', `/files/${victim.serverId}/folder`, { token, body: { name: 'theirs' } })
      assert.equal(made.status, 201)
      await call('DELETE', `/files/${victim.serverId}`, { body: { files: ['theirs'] } })
    }),
  )

  await t.test('a service that is gone', () => noticed(scene, /ECONNRE|hang up|down/, () => keeper.kill()))
})
