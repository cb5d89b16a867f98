// How the kernel is told of what is in an open directory: `/proc/<number>/fd/<fd>/<name>`.
import { existsSync, readlinkSync } from 'node:fs'
import { ASCII, nameToDisk } from './names.ts'

export const hasDescriptorPaths = existsSync('/proc/self/fd')

/** By our number there: following the link `self` is a third of what a look at a name costs. */
const descriptorsOf = (number: string) => `/proc/${number}/fd/`
const PROCESS = hasDescriptorPaths ? descriptorsOf(readlinkSync('/proc/self')) : ''
/** The descriptors are the same in all threads, but two that go by the same number wait for each other at each name. */
const OWN = hasDescriptorPaths ? descriptorsOf(ownNumber()) : ''

/** Of this thread: the first one's is that of the process. */
function ownNumber(): string {
  const link = existsSync('/proc/thread-self') ? '/proc/thread-self' : '/proc/self'
  return readlinkSync(link).split('/').at(-1) ?? ''
}

/** What the descriptor is open on, for calls that want a path. Only where `hasDescriptorPaths`. */
export const descriptorPath = (fd: number) => `${OWN}${fd}`

/** Whether it stays right whatever becomes of the directory's path. */
export const isOfDescriptor = (address: string) => hasDescriptorPaths && address.startsWith(OWN)

/** For this thread, of what the first one calls so. */
export function addressHere<A extends string | Buffer | null>(address: A): A | string {
  const isOurs = typeof address === 'string' && hasDescriptorPaths && address.startsWith(PROCESS)
  return isOurs ? `${OWN}${address.slice(PROCESS.length)}` : address
}

/** Of a name in a directory that somebody holds open under that address. */
export function addressIn(address: string, name: string): string | Buffer {
  const onDisk = nameToDisk(name)
  return typeof onDisk === 'string' ? `${address}/${onDisk}` : Buffer.concat([Buffer.from(`${address}/`), onDisk])
}

/** The same, of a name whose bytes are read as latin1, where the address is that of a descriptor. */
export const addressOfBytes = (address: string, name: string): string | Buffer =>
  ASCII.test(name) ? `${address}/${name}` : Buffer.from(`${address}/${name}`, 'latin1')
