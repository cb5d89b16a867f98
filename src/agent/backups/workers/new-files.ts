// Files of which one block is the whole content: a worker makes such a file when it has decoded and checked the block. For
// many small files that is most of the work of a restore (`npm run bench -- backups`, `small`).
import { constants, fchmodSync, fchownSync, fstatSync, futimesSync, type Stats, unlinkSync } from 'node:fs'
import { type Descriptor, openDescriptor } from '../../../kit/files/descriptor.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { secondsOf } from '../../../kit/files/file-times.ts'
import { writeFully } from '../../../kit/files/write-fully.ts'
import { addressHere } from '../../files/sandbox/addresses.ts'
import { type PackedAddresses, packAddresses, unpackAddresses } from './packed-addresses.ts'

export interface NewFile {
  /** Of a place in staging, where nobody else makes anything. */
  address: string | Buffer
  /** Under which its maker knows it. */
  number: number
  /** The nine bits. */
  mode: number
  uid: number
  gid: number
  mtimeNs: bigint
}

/** As rows of numbers, for another thread. */
export interface NewFiles {
  addresses: PackedAddresses
  attributes: Uint32Array
  times: BigInt64Array
}

const ATTRIBUTE = { number: 0, mode: 1, uid: 2, gid: 3, fields: 4 } as const
/** Of a row that says what became of a file: what it was once it was made. */
export const MADE = { number: 0, ino: 1, size: 2, mtimeMs: 3, fields: 4 } as const

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
const isRoot = process.getuid?.() === 0

export function newFilesOf(files: readonly NewFile[]): NewFiles {
  const attributes = new Uint32Array(files.length * ATTRIBUTE.fields)
  const times = new BigInt64Array(files.length)
  let index = 0
  for (const { number, mode, uid, gid, mtimeNs } of files) {
    const at = index * ATTRIBUTE.fields
    attributes[at + ATTRIBUTE.number] = number
    attributes[at + ATTRIBUTE.mode] = mode
    attributes[at + ATTRIBUTE.uid] = uid
    attributes[at + ATTRIBUTE.gid] = gid
    times[index++] = mtimeNs
  }
  return { addresses: packAddresses(files.map(({ address }) => address)), attributes, times }
}

/** Makes the file at that index, complete with its attributes, and notes it in a row of `made`. */
export type FileMaker = (index: number, content: Uint8Array, made: Float64Array, row: number) => void

export function createFileMaker({ addresses: packed, attributes, times }: NewFiles): FileMaker {
  const addresses = unpackAddresses(packed)
  return (index, content, made, row) => {
    const at = index * ATTRIBUTE.fields
    const stats = makeFile(addresses[index] ?? '', content, {
      mode: attributes[at + ATTRIBUTE.mode] ?? 0,
      uid: attributes[at + ATTRIBUTE.uid] ?? 0,
      gid: attributes[at + ATTRIBUTE.gid] ?? 0,
      mtimeNs: times[index] ?? 0n,
    })
    const to = row * MADE.fields
    made[to + MADE.number] = attributes[at + ATTRIBUTE.number] ?? 0
    made[to + MADE.ino] = stats.ino
    made[to + MADE.size] = stats.size
    made[to + MADE.mtimeMs] = stats.mtimeMs
  }
}

function makeFile(
  address: string | Buffer,
  content: Uint8Array,
  { mode, uid, gid, mtimeNs }: Omit<NewFile, 'address' | 'number'>,
): Stats {
  // Not `using`: for each of very many files that is a quarter of a microsecond.
  const file = create(addressHere(address), mode)
  try {
    const { fd } = file
    writeFully(fd, content)
    const seconds = secondsOf(mtimeNs)
    futimesSync(fd, seconds, seconds)
    const stats = fstatSync(fd)
    // Mostly both are as they should be already.
    if (isRoot && (stats.uid !== uid || stats.gid !== gid)) fchownSync(fd, uid, gid)
    if ((stats.mode & 0o7777) !== mode) fchmodSync(fd, mode)
    return stats
  } finally {
    file[Symbol.dispose]()
  }
}

/** What is there already was made by the same job, which is done again where something in a pack was damaged. */
function create(address: string | Buffer, mode: number): Descriptor {
  try {
    return openDescriptor(address, CREATE, mode)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    unlinkSync(address)
    return openDescriptor(address, CREATE, mode)
  }
}
