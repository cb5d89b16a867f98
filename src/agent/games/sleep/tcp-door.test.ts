// What strangers do at a door, at the level of connections.
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { freePort } from '../../../../test/support/free-port.ts'
import { until } from '../../../../test/support/until.ts'
import { SLEEP_DOOR } from '../../../contract/fixed-limits.ts'
import { handshake, open, PING, STATUS_REQUEST } from './minecraft-client.testing.ts'
import { openMinecraftDoor } from './tcp-door.ts'

function countSockets(): number {
  const isSocket = (fd: string) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:')
    } catch {
      return false
    }
  }
  return readdirSync('/proc/self/fd').filter(isSocket).length
}

/** A visitor who has been seen, and says no more for now. */
async function enter(port: number): Promise<Socket> {
  const visitor = await open(port)
  visitor.write(Buffer.concat([handshake(1), STATUS_REQUEST]))
  await once(visitor, 'readable')
  return visitor
}

test('one who is told goodbye in the moment in which another makes it give way leaves nothing behind', async () => {
  const before = countSockets()
  const port = await freePort()
  const door = await openMinecraftDoor(port, () => 'waking')
  for (let round = 0; round < 5; round++) {
    const inside = await Promise.all(Array.from({ length: SLEEP_DOOR.connectionsPerAddress }, () => enter(port)))
    // All of it is there when the door looks next.
    for (const visitor of inside) visitor.write(PING)
    const others = inside.map(() => connect(port, '127.0.0.1').on('error', () => {}))
    await Promise.all(others.map((other) => once(other, 'connect')))
    for (const visitor of [...inside, ...others]) visitor.destroy()
  }
  await door.close()
  await until(async () => countSockets() <= before)
})
