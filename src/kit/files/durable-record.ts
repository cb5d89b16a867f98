// A small record that is there whole or not at all, also after a power cut.
import { constants, fsyncSync, linkSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { openDescriptor } from './descriptor.ts'
import { hasCode } from './errno.ts'

export function writeRecord(path: string, record: object): void {
  writeFileSync(`${path}.new`, JSON.stringify(record), { mode: 0o600, flush: true })
  renameSync(`${path}.new`, path)
  syncFolder(dirname(path))
}

/** False where there is one already, whoever made it: only one of two who come at once makes it. */
export function claimRecord(path: string, record: object): boolean {
  const staged = `${path}.${process.pid}`
  writeFileSync(staged, JSON.stringify(record), { mode: 0o600, flush: true })
  try {
    linkSync(staged, path)
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  } finally {
    unlinkSync(staged)
  }
  syncFolder(dirname(path))
  return true
}

export function readRecord<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** Durable; one that is not there is a success. */
export function removeRecord(path: string): void {
  rmSync(path, { force: true })
  syncFolder(dirname(path))
}

/** Names that were given in it last, too. */
export function syncFolder(path: string): void {
  using folder = openDescriptor(path, constants.O_RDONLY | constants.O_DIRECTORY)
  fsyncSync(folder.fd)
}
