// Which addresses a server may be made to fetch from: those of the public Internet, and none of our own.
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

const NOT_PUBLIC_V4: [string, number][] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

/** Inside 2000::/3, where the public addresses are: protocol assignments and Teredo, examples, 6to4, examples. */
const NOT_PUBLIC_V6: [string, number][] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

const refusedV4 = new BlockList()
for (const [net, prefix] of NOT_PUBLIC_V4) refusedV4.addSubnet(net, prefix, 'ipv4')
const refusedV6 = new BlockList()
for (const [net, prefix] of NOT_PUBLIC_V6) refusedV6.addSubnet(net, prefix, 'ipv6')
const globalV6 = new BlockList()
globalV6.addSubnet('2000::', 3, 'ipv6')

/** Loopback, link-local, unique local, multicast, v4-mapped and NAT64 addresses all lie outside 2000::/3. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !refusedV4.check(address, 'ipv4')
  if (isIP(address) !== 6 || address.includes('%')) return false
  return globalV6.check(address, 'ipv6') && !refusedV6.check(address, 'ipv6')
}

export function isOwnAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((list) => list?.some((own) => own.address === address))
}
