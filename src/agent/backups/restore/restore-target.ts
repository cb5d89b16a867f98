// The server that is restored into, as a restore sees it.
import type { Sandbox } from '../../files/sandbox/sandbox.ts'
import type { Usage } from '../../files/space/usage.ts'
import type { TrashBatch, TrashRecord } from '../../files/trash/trash-records.ts'
import type { ServerFolders } from '../../layout.ts'
import type { RestoreGate } from '../../restore-state.ts'
import type { Repository } from '../store/repository.ts'

export interface RestoreTarget {
  serverId: string
  repository(): Promise<Repository>
  folders: Pick<ServerFolders, 'staging' | 'trash'>
  sandbox: Sandbox
  /** Writes down, durably, what is about to be moved into a new batch of the trash. At most 65,536 items. */
  prepareTrash(items: TrashRecord['items']): Promise<TrashBatch>
  /** Goes on with what a process that died has left of emptying and freeing. */
  recoverTrash(): Promise<void>
  usage: Pick<Usage, 'add' | 'quota' | 'fitsEntries' | 'read' | 'shrink' | 'touch'>
  gate: RestoreGate
  now(): number
  /** Of what went wrong and is neither the end of the restore nor its caller's to know. */
  onUnexpected(error: unknown): void
}
