// What is done to a whole server, with what must be recorded of it. Each answers what came of it, and tells the model.
import { join } from 'node:path'
import { namesIn, readTree, serverFolder } from './checker/disk.ts'
import { backupEnd, jobEnd, type ListedBackup } from './checker/work.ts'
import { expectOk, type Outcome } from './history.ts'
import { type BackupModel, labelsOf, type ServerModel, type Tree, without } from './model.ts'
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
  const states = server.plots.map(({ path, state }) => [path, state.tree] as const)
  const { status, warnings } = await backupEnd(round, server.id, backup.id)
  const trees = new Map(states.map(([path, tree]) => [path, warnings.reduce(withoutUnread, tree)]))
  backup.trees = status === 'completed' ? trees : null
  return backup
}

/** What the disk would not give is not in the backup, and the backup says so: that, and nothing else, is missing. */
function withoutUnread(tree: Tree, warning: string): Tree {
  const [, path, isFile] = /^(\/.*) could not be (?:(read)|listed) \([A-Z]+\)/.exec(warning) ?? []
  if (path === undefined) return tree
  const rest = without(tree, path)
  const folder = tree.get(path)
  return isFile || folder === undefined ? rest : new Map([...rest, [path, folder]])
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

export const isUnfinished = ({ code }: Restored) => code === 'restore_unfinished'

/**
 * Alone with the server. Where it completed as a whole, the plots are what the backup holds. Where it is unfinished, they
 * are in between until it is finished.
 */
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
  const restored = { status: ended.status, code: ended.error?.code ?? null }
  const because = `a restore of ${backup.id} ended as ${ended.status} ${restored.code ?? ''}`
  const isDone = ended.status === 'completed'
  round.expect(asked.op, 'backup.restored', isDone ? 1 : 0, because)
  round.expect(asked.op, 'backup.restore_unfinished', isUnfinished(restored) ? 1 : 0, because)
  checkNothingLost(round, server, because)
  if (isDone && backup.trees && !body.paths) takeOver(server, backup.trees, body.mode ?? 'replace')
  return restored
}

/** Chooses how a restore that has stopped in the middle ends. */
export async function finishRestore(
  round: Round,
  server: ServerModel,
  backup: BackupModel,
  direction: 'forward' | 'back',
): Promise<Restored> {
  const target = `/servers/${server.id}`
  await compareUnfinished(round, server, true)
  const asked = await change(round, 'job.started', 'POST', `${target}/restore/finish`, { direction })
  if (asked.kind !== 'ok') return { status: asked.kind, code: asked.kind === 'refused' ? asked.code : null }
  const ended = await jobEnd(round, server.id, asked.body.id)
  const restored = { status: ended.status, code: ended.error?.code ?? null }
  const because = `a restore of ${backup.id} was finished ${direction} and ended as ${ended.status}`
  const isDone = ended.status === 'completed'
  const isForward = direction === 'forward'
  round.expect(asked.op, isForward ? 'backup.restored' : 'backup.restore_undone', isDone ? 1 : 0, because)
  checkNothingLost(round, server, because)
  if (isDone) await compareUnfinished(round, server, false)
  if (isDone && isForward && backup.trees) takeOver(server, backup.trees, 'replace')
  return restored
}

async function compareUnfinished(round: Round, server: ServerModel, isWanted: boolean): Promise<void> {
  const { body } = expectOk(await round.history.send({ method: 'GET', target: `/servers/${server.id}` }))
  if ((body.unfinishedRestore !== null) === isWanted) return
  round.violation(`${server.id} ${isWanted ? 'does not say' : 'still says'} that a restore has stopped in the middle`)
}

/** Whatever becomes of a restore: what was there before is in the files, in the trash, or still where it is moved from. */
function checkNothingLost(round: Round, server: ServerModel, because: string): void {
  if (server.quotaBytes !== null) return
  const there = new Set(readTree(serverFolder(round.keeper.dataDir, server.id)).values())
  const lost = server.plots.flatMap(({ state }) => labelsOf(state)).filter((label) => !there.has(label))
  if (lost.length > 0) round.violation(`${because}, and ${lost.length} files of ${server.id} are nowhere any more`)
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

/** Resolves once it is no longer on its way out, or back. Answers its status, null where it is not found. */
export async function statusEnd(round: Round, server: ServerModel): Promise<string | null> {
  for (;;) {
    const outcome = await round.history.send({ method: 'GET', target: `/servers/${server.id}` })
    if (outcome.kind !== 'ok') return null
    if (!/ing$/.test(outcome.body.status)) return outcome.body.status
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** A deleted server is brought back; what it had is compared by the checker from then on. */
export async function undelete(round: Round, server: ServerModel): Promise<void> {
  const outcome = await round.history.send({ method: 'POST', target: `/servers/${server.id}/undelete` })
  round.expect(outcome.op, 'server.undeleted', outcome.kind === 'ok' ? 1 : 0, `undelete was ${outcome.kind}`)
  if (outcome.kind === 'ok' && (await statusEnd(round, server)) === 'ready') server.isDeleted = false
  else round.violation(`${server.id} was deleted, and is not brought back: ${JSON.stringify(outcome)}`)
}

/** From here on it is not there, and nothing of it can be reached. */
export async function purge(round: Round, server: ServerModel): Promise<void> {
  const json = { name: server.name, purge: true }
  const outcome = await change(round, 'server.deletion_started', 'DELETE', `/servers/${server.id}`, json)
  if (outcome.kind !== 'ok') return
  server.isDeleted = true
  server.backups.clear()
  const status = await statusEnd(round, server)
  if (status !== null) round.violation(`${server.id} was purged, and is ${status}`)
  const left = namesIn(round.keeper.dataDir).filter((name) =>
    namesIn(join(round.keeper.dataDir, name)).includes(server.id),
  )
  if (left.length > 0) round.violation(`${server.id} was purged, and is still below ${left.join(' and ')}`)
}
