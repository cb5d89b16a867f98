// Whether all files of a server belong to the user of its game.
import { execFile } from 'node:child_process'
import type { OwnershipQuestion } from './protocol.ts'

/** False also where something vanished meanwhile, or cannot be read. */
export function isOwner({ file, args }: OwnershipQuestion): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(file, args, { env: {} }, (error, said) => resolve(error === null && said === ''))
  })
}
