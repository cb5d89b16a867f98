// A small record that is there whole or not at all, also after a power cut.
import { fsyncSync, linkSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { openDescriptor } from '../../../kit/descriptor.ts'
import { hasCode } from '../../../kit/errno.ts'

export function writeRecord(path: string, record: object): void {
  stage(path, record)
  renameSync(`${path}.new`, path)
  syncFolder(path)
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
  syncFolder(path)
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

function stage(path: string, record: object): void {
  writeFileSync(`${path}.new`, JSON.stringify(record), { mode: 0o600, flush: true })
}

function syncFolder(path: string): void {
  using folder = openDescriptor(dirname(path), 'r')
  fsyncSync(folder.fd)
}
