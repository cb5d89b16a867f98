// The instance's secret, and a key of its own for each purpose: no key is used for two things.
import { hkdfSync, randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { hasCode } from '../kit/errno.ts'

const BYTES = 32

export type Purpose = 'cursors' | 'activity' | 'links'

export function loadSecret(dataDir: string, configured: Buffer | null): Buffer {
  if (configured) return configured
  const file = join(dataDir, 'secret.key')
  try {
    return decode(readFileSync(file, 'utf8'), file)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
  const draft = `${file}.new`
  const fd = openSync(draft, 'w', 0o600)
  writeSync(fd, `${randomBytes(BYTES).toString('hex')}\n`)
  fsyncSync(fd)
  closeSync(fd)
  linkSync(draft, file)
  unlinkSync(draft)
  return decode(readFileSync(file, 'utf8'), file)
}

function decode(text: string, file: string): Buffer {
  const secret = Buffer.from(text.trim(), 'hex')
  if (secret.length !== BYTES)
    throw new Error(`${file} does not hold 64 hex digits; restore it from your backup of the data directory`)
  return secret
}

export function keyFor(secret: Buffer, purpose: Purpose): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `gamekeeper ${purpose}`, BYTES))
}
