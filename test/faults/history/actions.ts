// What is done to a whole server, with what must be recorded of it. Each answers what came of it, and tells the model.
import { backupEnd, jobEnd, type ListedBackup } from './checker/work.ts'
import type { Outcome } from './history.ts'
import type { BackupModel, ServerModel, Tree } from './model.ts'
import type { Round } from './round.ts'

/** Sends it and expects the event once where it was answered, never where it was refused. */
export async function change(
  round: Round,
  event: string,
  method: string,
  target: string,
  json?: object,
): Promise<Outcome> {
  const outcome = await round.history.send({ method, target, ...(json ? { json } : {}) })
  const because = `${method} ${target} (${outcome.op}) was answered with ${outcome.kind}`
  round.expect(outcome.op, event, outcome.kind === 'ok' ? 1 : outcome.kind === 'refused' ? 0 : [0, 1], because)
  return outcome
}

export async function startBackup(
  round: Round,
  server: ServerModel,
  body: object = {},
): Promise<BackupModel | undefined> {
  const asked = await change(round, 'backup.started', 'POST', `/backups/${server.id}`, body)
  if (asked.kind !== 'ok') return undefined
  const backup: BackupModel = { id: asked.body.id, isLocked: asked.body.isLocked, trees: null, deletion: 'none' }
  server.backups.set(backup.id, backup)
  return backup
}

/** While nobody writes: what is in it is known then. */
export async function makeBackup(round: Round, server: ServerModel, body: object = {}): Promise<BackupModel> {
  const backup = await startBackup(round, server, body)
  if (!backup) throw new Error(`no backup of ${server.id} could be asked for`)
  const trees = new Map(server.plots.map(({ path, state }) => [path, state.tree]))
  const ended = await backupEnd(round, server.id, backup.id)
  backup.trees = ended.status === 'completed' ? trees : null
  return backup
}

export async function deleteBackup(round: Round, server: ServerModel, backup: BackupModel): Promise<Outcome> {
  const outcome = await round.history.send({ method: 'DELETE', target: `/backups/${server.id}/${backup.id}` })
  if (outcome.kind === 'ok') backup.deletion = 'asked'
  if (outcome.kind === 'unknown') backup.deletion = 'unknown'
  return outcome
}

export async function setLock(
  round: Round,
  server: ServerModel,
  backup: BackupModel,
  isLocked: boolean,
): Promise<Outcome> {
  const target = `/backups/${server.id}/${backup.id}/lock`
  const outcome = await round.history.send({ method: isLocked ? 'POST' : 'DELETE', target })
  if (outcome.kind === 'ok') backup.isLocked = isLocked
  return outcome
}

export interface Restored {
  status: string
  code: string | null
}

/** Alone with the server. Where it completed as a whole, the plots are what the backup holds. */
export async function restore(
  round: Round,
  server: ServerModel,
  backup: BackupModel,
  body: { mode?: 'replace' | 'merge'; paths?: string[]; safetyBackup?: boolean } = {},
): Promise<Restored> {
  const target = `/backups/${server.id}/${backup.id}/restore`
  const asked = await change(round, 'backup.restore_started', 'POST', target, { mode: 'replace', ...body })
  if (asked.kind !== 'ok') return { status: asked.kind, code: asked.kind === 'refused' ? asked.code : null }
  const ended = await jobEnd(round, server.id, asked.body.id)
  await learnSafetyBackups(round, server)
  const isDone = ended.status === 'completed'
  round.expect(asked.op, 'backup.restored', isDone ? 1 : 0, `a restore of ${backup.id} ended as ${ended.status}`)
  if (isDone && backup.trees && !body.paths) takeOver(server, backup.trees, body.mode ?? 'replace')
  return { status: ended.status, code: ended.error?.code ?? null }
}

/** What a restore took for safety is nobody's to take away, but for older ones of its own kind. */
async function learnSafetyBackups(round: Round, server: ServerModel): Promise<void> {
  const outcome = await round.history.send({ method: 'GET', target: `/backups/${server.id}?limit=100` })
  if (outcome.kind !== 'ok') return
  for (const { id, isLocked, status } of outcome.body.data as ListedBackup[])
    if (!server.backups.has(id) && status === 'completed')
      server.backups.set(id, { id, isLocked, trees: null, deletion: 'none' })
}

function takeOver(server: ServerModel, trees: ReadonlyMap<string, Tree>, mode: 'replace' | 'merge'): void {
  for (const plot of server.plots) {
    const restored = trees.get(plot.path) ?? new Map<string, string>()
    const kept = mode === 'merge' ? plot.state.tree : new Map<string, string>()
    // What the restore displaced is in the trash in batches of its own; that it is somewhere is checked by label.
    plot.state = { ...plot.state, tree: new Map([...kept, ...restored]) }
  }
}

export async function startDeletion(round: Round, server: ServerModel): Promise<Outcome> {
  const outcome = await change(round, 'server.deletion_started', 'DELETE', `/servers/${server.id}`, {
    name: server.name,
  })
  if (outcome.kind === 'ok') server.isDeleted = true
  return outcome
}

/** Resolves once the server answers `not_found`, or is otherwise no longer on its way out. */
export async function deletionEnd(round: Round, server: ServerModel): Promise<void> {
  for (;;) {
    const outcome = await round.history.send({ method: 'GET', target: `/servers/${server.id}` })
    if (outcome.kind !== 'ok' || outcome.body.status !== 'deleting') return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
