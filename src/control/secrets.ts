// The instance's secret, and a separate key derived from it for each purpose.
import { hkdfSync, randomBytes } from 'node:crypto'
import { fsyncSync, linkSync, readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { openDescriptor } from '../kit/files/descriptor.ts'
import { syncFolder } from '../kit/files/durable-record.ts'
import { hasCode } from '../kit/files/errno.ts'
import { writeFully } from '../kit/files/write-fully.ts'
import { StartFault } from '../kit/start-fault.ts'

const BYTES = 32

export type Purpose = 'cursors' | 'activity' | 'links'

/** Made only for a database that has never been used: another one was sealed with a secret that must not be replaced. */
export function loadSecret(dataDir: string, configured: Buffer | null, isDatabaseFresh = false): Buffer {
  if (configured) return configured
  const file = join(dataDir, 'secret.key')
  try {
    return decode(readFileSync(file, 'utf8'), file)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
    if (!isDatabaseFresh) throw missingSecret(file)
  }
  const draft = `${file}.new`
  writeSecret(draft)
  linkSync(draft, file)
  unlinkSync(draft)
  syncFolder(dataDir)
  return decode(readFileSync(file, 'utf8'), file)
}

function writeSecret(path: string): void {
  using file = openDescriptor(path, 'w', 0o600)
  writeFully(file.fd, Buffer.from(`${randomBytes(BYTES).toString('hex')}\n`))
  fsyncSync(file.fd)
}

function decode(text: string, file: string): Buffer {
  const secret = Buffer.from(text.trim(), 'hex')
  if (secret.length !== BYTES)
    throw new StartFault(`${file} does not hold 64 hex digits; restore it from your backup of the data directory`)
  return secret
}

const missingSecret = (file: string) =>
  new StartFault(
    `${file} is missing, and the database was used with it. Put it back from your backup of the data directory, or set ` +
      'GAMEKEEPER_SECRET to what it held. If it is lost for good, write 64 new hex digits to it (openssl rand -hex 32): ' +
      'activity until now can then no longer be verified, and links that are out no longer work.',
  )

export function keyFor(secret: Buffer, purpose: Purpose): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `gamekeeper ${purpose}`, BYTES))
}
