// A game that floods its console while many follow it, one of whom never reads.
import assert from 'node:assert/strict'
import { copyFileSync, readdirSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { CONSOLE_KEPT_BYTES, CONSOLE_SEGMENT_BYTES } from '../../src/contract/fixed-limits.ts'
import { openEvents } from '../support/events.ts'
import { endGames, gameFile } from '../support/games.ts'
import { needs } from '../support/needs.ts'
import { killLeftovers } from '../support/process.ts'
import { attack } from './support/attack.ts'
import { openScene, TENANT_SCOPES } from './support/scene.ts'
import { sized } from './support/size.ts'

after(killLeftovers)

test(
  'a console that is flooded, and followed by many, is read whole by who keeps up and harms nobody',
  needs('bubblewrap'),
  async (t) => {
    const scopes = [...TENANT_SCOPES, 'power:write', 'console:read', 'console:write']
    const scene = await openScene(t, { scopes })
    const { attacker, keeper } = scene
    t.after(() => endGames(keeper.dataDir))
    copyFileSync(gameFile('flood'), join(attacker.folder, 'start'))
    const path = `/servers/${attacker.serverId}/console`
    const url = `${keeper.url}/v1/game${path}`
    const floodLines = sized(20_000)
    await attack(scene, async () => {
      assert.equal(
        (await attacker.call('POST', `/servers/${attacker.serverId}/power`, { body: { action: 'start' } })).status,
        202,
      )
      const { hostname, port } = new URL(keeper.url)
      const unread = Array.from({ length: sized(5, 40) }, () => {
        const socket = connect({ host: hostname, port: Number(port) })
          .on('error', () => {})
          .pause()
        const head = [`GET ${new URL(url).pathname} HTTP/1.1`, 'host: x', 'accept: text/event-stream']
        socket.write(`${[...head, 'last-event-id: 0', `authorization: Bearer ${attacker.token}`].join('\r\n')}\r\n\r\n`)
        return socket
      })
      const reader = await openEvents(url, attacker.token, { 'last-event-id': '0' })
      assert.equal((await attacker.call('POST', path, { body: { command: String(floodLines) } })).status, 202)
      let flood = 0
      for (let line = 1; ; line++) {
        const event = await reader.next()
        assert.equal(event?.data.line, line, 'each line once, none missed')
        const [, number] = /^line (\d+) /.exec(event?.data.text) ?? []
        if (number !== undefined) assert.equal(Number(number), ++flood)
        if (event?.data.text === 'Done (0.1s)!') break
      }
      assert.equal(flood, floodLines)
      reader.close()
      for (const socket of unread) socket.destroy()
    })
    const folder = join(attacker.folder, '..', 'console')
    const kept = readdirSync(folder).reduce((bytes, name) => bytes + statSync(join(folder, name)).size, 0)
    assert.ok(kept <= CONSOLE_KEPT_BYTES + CONSOLE_SEGMENT_BYTES, `${kept} bytes are kept`)
  },
)
