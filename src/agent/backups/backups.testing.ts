// What the tests of this folder share: an agent's backups on a real disk, and whole trees as data to compare.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type {
  BackupReport,
  BackupsWork,
  ReclaimReport,
  RestoreOutcome,
  RestoreReport,
  ScrubReport,
  VerifyReport,
} from '../../contract/agent/agent-backups.ts'
import { newId } from '../../kit/ids.ts'
import { createAgentFiles } from '../files/index.ts'
import { layout } from '../layout.ts'
import { type AgentBackupsOptions, createAgentBackups } from './index.ts'

export interface TestAgent {
  backups: ReturnType<typeof createAgentBackups>
  files: ReturnType<typeof createAgentFiles>
  dataDir: string
  /** The store's own folder. */
  storeDir: string
  /** Makes the server when it is new. Answers the folder of its files. */
  filesOf(serverId: string): string
  run<K extends BackupsWork['kind']>(
    work: Extract<BackupsWork, { kind: K }>,
    serverId?: string,
    signal?: AbortSignal,
  ): Promise<Results[K]>
  create(serverId: string, options?: { backupId?: string; ignored?: string; isLocked?: boolean }): Promise<BackupReport>
  restore(
    serverId: string,
    backupId: string,
    options?: Partial<Extract<BackupsWork, { kind: 'backups.restore' }>>,
  ): Promise<RestoreReport>
  stop(): Promise<void>
}

interface Results {
  'backups.create': BackupReport
  'backups.restore': RestoreReport
  'backups.finishRestore': RestoreOutcome
  'backups.verify': VerifyReport
  'backups.scrub': ScrubReport
  'backups.reclaim': ReclaimReport
}

export function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-backups-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export async function startAgent(dataDir: string, options: Partial<AgentBackupsOptions> = {}): Promise<TestAgent> {
  const folders = layout(dataDir)
  const unexpected: unknown[] = []
  const onUnexpected = (error: unknown) => void unexpected.push(error)
  const files = createAgentFiles({ layout: folders, onUnexpected })
  const backups = createAgentBackups({
    layout: folders,
    server: files.server,
    key: null,
    nice: 0,
    graceMs: 0,
    threads: 2,
    // Of a few entries a chunk, and of a few chunks a part: what is true of large trees is tested with small ones.
    manifestSizes: { chunkBytes: 400, ownBytes: 1000 },
    onUnexpected,
    ...options,
  })
  await backups.start()
  if (unexpected.length > 0) throw unexpected[0]

  const run: TestAgent['run'] = async (work, serverId = 'srv_none', signal = new AbortController().signal) => {
    const context = { taskId: newId('job'), serverId, signal, report: () => {} }
    return (await backups.handlers[work.kind](work, context)) as never
  }

  return {
    backups,
    files,
    dataDir,
    storeDir: folders.backups,
    run,
    filesOf(serverId) {
      mkdirSync(folders.server(serverId).files, { recursive: true })
      return folders.server(serverId).files
    },
    create: (serverId, { backupId = newId('bkp'), ignored = '', isLocked = false } = {}) =>
      run({ kind: 'backups.create', backupId, name: 'a backup', createdAt: Date.now(), ignored, isLocked }, serverId),
    restore: (serverId, backupId, more = {}) =>
      run(
        {
          kind: 'backups.restore',
          jobId: newId('job'),
          backupId,
          sourceServerId: serverId,
          mode: 'replace',
          paths: null,
          safetyBackupId: null,
          ...more,
        },
        serverId,
      ),
    async stop() {
      await backups.stop()
      await files.stop()
    },
  }
}

export async function testAgent(t: TestContext, options: Partial<AgentBackupsOptions> = {}): Promise<TestAgent> {
  const agent = await startAgent(temporaryFolder(t), options)
  t.after(() => agent.stop())
  return agent
}

export type Tree = Record<string, { is: string; mtimeNs: bigint }>

/** Everything that a restore must bring back, by path. Names are read as latin1, so that any bytes can be compared. */
export function snapshot(root: string): Tree {
  const found: Tree = {}
  const firstNames = new Map<bigint, string>()
  const visit = (directory: Buffer, prefix: string) => {
    for (const name of readdirSync(directory, { encoding: 'latin1' }).sort()) {
      const full = Buffer.concat([directory, Buffer.from('/'), Buffer.from(name, 'latin1')])
      const path = `${prefix}/${name}`
      const stats = lstatSync(full, { bigint: true })
      const mode = (Number(stats.mode) & 0o7777).toString(8)
      const mtimeNs = stats.mtimeNs
      const owner = `${stats.uid}:${stats.gid}`
      if (stats.isSymbolicLink())
        found[path] = { is: `link ${readlinkSync(full, { encoding: 'latin1' })} ${owner}`, mtimeNs }
      else if (stats.isDirectory()) {
        found[path] = { is: `directory ${mode} ${owner}`, mtimeNs }
        visit(full, path)
      } else if (stats.isFile()) {
        const same = firstNames.get(stats.ino)
        firstNames.set(stats.ino, same ?? path)
        const content = createHash('sha256').update(readFileSync(full)).digest('hex')
        found[path] = { is: `file ${mode} ${owner} ${stats.size} ${content}${same ? ` = ${same}` : ''}`, mtimeNs }
      }
    }
  }
  visit(Buffer.from(root), '')
  return found
}

/** Times may be off by what Node cannot set: less than a microsecond. */
export function assertSameTree(actual: Tree, expected: Tree): void {
  const plain = (tree: Tree) => Object.fromEntries(Object.entries(tree).map(([path, { is }]) => [path, is]))
  assert.deepEqual(plain(actual), plain(expected))
  for (const [path, { mtimeNs }] of Object.entries(expected)) {
    const gap = (actual[path]?.mtimeNs ?? 0n) - mtimeNs
    assert.ok(gap > -1000n && gap < 1000n, `the time of ${path} is off by ${gap} ns`)
  }
}

export function isSameTree(actual: Tree, expected: Tree): boolean {
  try {
    assertSameTree(actual, expected)
    return true
  } catch {
    return false
  }
}
