// Packets to the embedded name server. The first byte says over what they came.
import { assertSound, query, SAMPLES } from '../../../src/dns/embedded/responder.testing.ts'

export const covers = ['/src/dns/']

export const dictionary = [
  '\x04play\x04test\x00',
  '\x07machine',
  '\xc0\x0c',
  '\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00',
]

const overUdp = (packet: Buffer) => Buffer.concat([Buffer.of(0), packet])

export const seeds = () => [
  ...SAMPLES.map(overUdp),
  ...['ANY', 'NS', 'SOA', 'CNAME', 'TXT', 'AAAA', 'AXFR', 'IXFR'].map((type) =>
    overUdp(query({ name: 'play.test', type })),
  ),
  ...['loop-a', 'alias', 'dangling', 'abroad', 'text', 'gone'].map((name) =>
    overUdp(query({ name: `${name}.play.test`, type: 'A', flags: 256 })),
  ),
  Buffer.concat([Buffer.of(1), query({ name: 'many.play.test', type: 'A' })]),
]

export function run(input: Buffer): void {
  assertSound(input.subarray(1), (input[0] ?? 0) % 2 === 0 ? 'udp' : 'tcp')
}
