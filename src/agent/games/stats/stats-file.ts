// A week of points in a file of fixed size: for each step a ring, in which the time of a point says where it is. Nothing has to
// be found, moved or compacted, and whatever is damaged or too old does not fit its place and is no point.
import { constants, readSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { STATS_TIERS } from '../../../contract/fixed-limits.ts'
import { openDescriptor } from '../../../kit/files/descriptor.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { FIELDS, type Point } from './stats-point.ts'

export interface Tier {
  stepMs: number
  points: number
  /** In the file. */
  offset: number
}

/** Checksum, number of samples, time, and a value for each field. */
const SAMPLES_AT = 4
const TIME_AT = 8
const VALUES_AT = 16
const SLOT_BYTES = VALUES_AT + 8 * FIELDS.length

let offset = 0
export const TIERS: readonly Tier[] = STATS_TIERS.map(({ stepSeconds, points }) => {
  const tier = { stepMs: stepSeconds * 1000, points, offset }
  offset += points * SLOT_BYTES
  return tier
})

const OPEN = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW

const slotOf = ({ stepMs, points }: Tier, at: number) => (at / stepMs) % points

function encode(point: Point): Buffer {
  const slot = Buffer.alloc(SLOT_BYTES)
  slot.writeUInt32LE(point.samples, SAMPLES_AT)
  slot.writeDoubleLE(point.at, TIME_AT)
  for (const [index, field] of FIELDS.entries()) slot.writeDoubleLE(point[field] ?? Number.NaN, VALUES_AT + 8 * index)
  slot.writeUInt32LE(crc32(slot.subarray(SAMPLES_AT)), 0)
  return slot
}

function decode(slot: Buffer, tier: Tier, index: number): Point | undefined {
  if (slot.length < SLOT_BYTES || slot.readUInt32LE(0) !== crc32(slot.subarray(SAMPLES_AT))) return undefined
  const at = slot.readDoubleLE(TIME_AT)
  const samples = slot.readUInt32LE(SAMPLES_AT)
  if (!(at > 0) || samples === 0 || slotOf(tier, at) !== index) return undefined
  const point: Partial<Point> = { at, samples }
  for (const [position, field] of FIELDS.entries()) {
    const value = slot.readDoubleLE(VALUES_AT + 8 * position)
    point[field] = Number.isFinite(value) && value >= 0 ? value : null
  }
  return point as Point
}

/** Each in its place. Not synced: what a power cut takes is gone, and nothing else is. */
export function writePoints(file: string, points: readonly { tier: Tier; point: Point }[]): void {
  using opened = openDescriptor(file, OPEN, 0o600)
  for (const { tier, point } of points)
    writeSync(opened.fd, encode(point), 0, SLOT_BYTES, tier.offset + slotOf(tier, point.at) * SLOT_BYTES)
}

/** The point of a tier that begins then, if it is there. */
export function readPoint(file: string, tier: Tier, at: number): Point | undefined {
  try {
    using opened = openDescriptor(file, constants.O_RDONLY | constants.O_NOFOLLOW)
    const slot = Buffer.alloc(SLOT_BYTES)
    const index = slotOf(tier, at)
    const bytes = readSync(opened.fd, slot, 0, SLOT_BYTES, tier.offset + index * SLOT_BYTES)
    const point = decode(slot.subarray(0, bytes), tier, index)
    return point?.at === at ? point : undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** All of a tier that are there, in no order. */
export async function readTier(file: string, tier: Tier): Promise<Point[]> {
  const content = await readFile(file).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return Buffer.alloc(0)
    throw error
  })
  const points: Point[] = []
  for (let index = 0; index < tier.points; index++) {
    const from = tier.offset + index * SLOT_BYTES
    const point = decode(content.subarray(from, from + SLOT_BYTES), tier, index)
    if (point) points.push(point)
  }
  return points
}
