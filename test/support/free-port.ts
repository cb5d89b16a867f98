import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** Free for both protocols at this moment. */
export async function freePort(): Promise<number> {
  for (;;) {
    const tcp = createServer().listen(0)
    await once(tcp, 'listening')
    const { port } = tcp.address() as AddressInfo
    const udp = createSocket('udp4')
    const isFree = await new Promise<boolean>((resolve) => {
      udp.once('error', () => resolve(false)).bind(port, () => resolve(true))
    })
    udp.close()
    tcp.close()
    if (isFree) return port
  }
}
