// Quotas and limits at every moment: a watcher measures the disk while clients work, and afterwards the service's own
// account must be what the disk says.
import { setTimeout as delay } from 'node:timers/promises'
import { expectOk } from '../history.ts'
import type { ServerModel } from '../model.ts'
import type { Round } from '../round.ts'
import { usedBy } from './disk.ts'

const LOOK_EVERY_MS = 10

/** Looks until it is disposed of. */
export function watchQuotas(round: Round): AsyncDisposable {
  const stopping = new AbortController()
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      for (const server of round.servers) checkQuota(round, server)
      await delay(LOOK_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort()
      await watching
    },
  }
}

export function checkQuota(round: Round, server: ServerModel): void {
  if (server.quotaBytes === null || server.isDeleted) return
  // What a directory grows by is known, and counts, only once something has been put into it.
  const { fileBytes } = usedBy(round.keeper.dataDir, server.id)
  if (fileBytes > server.quotaBytes)
    round.violation(`${server.id} has more than its quota of ${server.quotaBytes} bytes allows`)
}

export async function checkAccounts(round: Round): Promise<void> {
  for (const server of round.servers) {
    if (server.isDeleted) continue
    checkQuota(round, server)
    const { body: usage } = expectOk(await round.history.send({ method: 'GET', target: `/files/${server.id}/usage` }))
    const { body: known } = expectOk(await round.history.send({ method: 'GET', target: `/servers/${server.id}` }))
    if (usage.quotaBytes !== known.limits.diskBytes)
      round.violation(`${server.id} has a quota of ${known.limits.diskBytes}, and ${usage.quotaBytes} is enforced`)
    const used = usedBy(round.keeper.dataDir, server.id)
    if (usage.usedBytes !== used.bytes)
      round.violation(`${server.id} is said to use ${usage.usedBytes} bytes, and ${used.bytes} are on disk`)
    if (usage.maxEntries !== known.limits.entries)
      round.violation(
        `${server.id} has a limit of ${known.limits.entries} entries, and ${usage.maxEntries} is enforced`,
      )
    if (usage.usedEntries !== used.entries)
      round.violation(`${server.id} is said to have ${usage.usedEntries} entries, and ${used.entries} are on disk`)
    // What is on its way may count on the trash to make room.
    if (usage.quotaBytes !== null && usage.usedBytes - usage.trashBytes + usage.reservedBytes > usage.quotaBytes)
      round.violation(`${server.id} has promised more than its quota allows: ${JSON.stringify(usage)}`)
    if (known.unfinishedRestore !== null)
      round.violation(`a restore of ${server.id} has stopped in the middle: ${JSON.stringify(known.unfinishedRestore)}`)
  }
}
