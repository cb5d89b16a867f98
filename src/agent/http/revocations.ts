// Which tokens' links are dead. Kept on disk: a link must not come back to life with a restart.
import { readFileSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import type { AgentLinks } from '../../contract/agent.ts'
import { fail } from '../../contract/errors.ts'
import { hasCode } from '../../kit/files/errno.ts'

/** Longer than any link can live, renewals included, without its token being asked for again. */
const REMEMBER_MS = 7 * 24 * 3600_000

export interface LinkRevocations extends AgentLinks {
  /** Runs `work` under a link: refused if the token is revoked, and aborted when it becomes so. */
  under<T>(tokenId: string, work: (signal: AbortSignal) => Promise<T>): Promise<T>
}

export function createLinkRevocations(file: string, clock: { now(): number }): LinkRevocations {
  const revokedAt = new Map<string, number>(readRevoked(file))
  const underWay = new Set<{ tokenId: string; abort: AbortController }>()
  let saving: Promise<void> = Promise.resolve()

  async function save(): Promise<void> {
    for (const [tokenId, at] of revokedAt) if (at < clock.now() - REMEMBER_MS) revokedAt.delete(tokenId)
    const draft = await open(`${file}.new`, 'w', 0o600)
    try {
      await draft.writeFile(JSON.stringify([...revokedAt]))
      await draft.sync()
    } finally {
      await draft.close()
    }
    await rename(`${file}.new`, file)
  }

  return {
    async revoke({ tokenIds }) {
      for (const tokenId of tokenIds) if (!revokedAt.has(tokenId)) revokedAt.set(tokenId, clock.now())
      for (const { tokenId, abort } of underWay) if (revokedAt.has(tokenId)) abort.abort(dead())
      saving = saving.catch(() => {}).then(save)
      await saving
    },

    async under(tokenId, work) {
      if (revokedAt.has(tokenId)) throw dead()
      const entry = { tokenId, abort: new AbortController() }
      underWay.add(entry)
      try {
        return await work(entry.abort.signal)
      } finally {
        underWay.delete(entry)
      }
    },
  }
}

const dead = () => fail('not_found', 'The link is not valid or has expired.')

function readRevoked(file: string): [string, number][] {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}
