// Zones on disk, one JSON file each: written beside, synced, renamed, so that a crash leaves the old or the new one.
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../kit/files/errno.ts'
import type { ChangeableRecordSet } from '../records.ts'

export interface StoredZone {
  zone: string
  /** Grows with every change, for as long as the zone lives. */
  serial: number
  recordSets: ChangeableRecordSet[]
}

export interface ZoneStore {
  /** Null for a zone that was never saved. Must fail, not answer null, for one that cannot be read. */
  load(zone: string): Promise<StoredZone | null>
  /** Must have reached the disk when it returns. Never called twice at once for a zone. */
  save(zone: StoredZone): Promise<void>
}

const FORMAT = 1

export function createZoneFiles(directory: string): ZoneStore {
  const fileOf = (zone: string) => join(directory, `${zone}.json`)
  return {
    async load(zone) {
      try {
        return parse(await readFile(fileOf(zone), 'utf8'), zone)
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return null
        throw error
      }
    },
    async save(zone) {
      await mkdir(directory, { recursive: true })
      const beside = `${fileOf(zone.zone)}.new`
      const file = await open(beside, 'w', 0o600)
      try {
        await file.writeFile(JSON.stringify({ format: FORMAT, ...zone }))
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(beside, fileOf(zone.zone))
      await syncDirectory(directory)
    },
  }
}

function parse(text: string, zone: string): StoredZone {
  const stored = JSON.parse(text) as StoredZone & { format: number }
  if (stored.format !== FORMAT || stored.zone !== zone || !Array.isArray(stored.recordSets)) {
    throw new Error(`the zone file of ${zone} is not one that this version can read`)
  }
  return { zone: stored.zone, serial: stored.serial, recordSets: stored.recordSets }
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
