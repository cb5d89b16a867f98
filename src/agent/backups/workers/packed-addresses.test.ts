import assert from 'node:assert/strict'
import { test } from 'node:test'
import { packAddresses, unpackAddresses } from './packed-addresses.ts'

test('addresses arrive as they were sent: text, bytes, and none', () => {
  const bytes = Buffer.from([0x2f, 0xff, 0x00, 0x61])
  for (const addresses of [['/a'], [null], ['/a b', null, '/größe\n二'], [null, null], ['/a', bytes, null]])
    assert.deepEqual(unpackAddresses(structuredClone(packAddresses(addresses))).map(asText), addresses.map(asText))
})

/** A message turns a Buffer into an array of the same bytes. */
const asText = (address: string | Uint8Array | null) =>
  address instanceof Uint8Array ? Buffer.from(address).toString('hex') : address
