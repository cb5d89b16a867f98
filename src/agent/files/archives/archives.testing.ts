// What the tests of archives share: a server with files on a real disk, and entries to make archives of.
import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { ArchiveFormat } from '../../../contract/agent/agent-files.ts'
import { layout } from '../../layout.ts'
import { createAgentFiles } from '../index.ts'
import { fillTree, makeTree } from '../trees.testing.ts'
import { type ArchiveEntry, nothing } from './entry.ts'
import { writeArchive } from './formats.ts'

export const serverId = 'srv_test'

export async function start(t: TestContext, files: Record<string, string | Uint8Array> = {}) {
  const places = layout(makeTree(t, { [`servers/${serverId}/files/`]: '' }))
  fillTree(places.server(serverId).files, files)
  const agent = createAgentFiles({ layout: places, onUnexpected: assert.ifError })
  await agent.start()
  await agent.sweep()
  t.after(() => agent.stop())
  const server = agent.server(serverId)
  const abort = new AbortController()
  const context = { taskId: 'job_1', serverId, signal: abort.signal, report: () => {} }
  const at = (path: string) => join(server.folders.files, path)
  const tree = () => readdirSync(server.folders.files, { recursive: true, encoding: 'utf8' }).sort()
  const staged = () => readdirSync(server.folders.staging)
  return { agent, server, at, tree, staged, context, abort }
}

export function entry(path: string, change: Partial<ArchiveEntry> & { text?: string | Uint8Array } = {}): ArchiveEntry {
  const bytes = Buffer.from(change.text ?? 'x')
  async function* content() {
    yield bytes
  }
  const kind = change.kind ?? 'file'
  return {
    path,
    kind,
    mode: 0o644,
    modifiedAt: new Date(0),
    sizeBytes: kind === 'file' ? bytes.length : 0,
    target: '',
    content: kind === 'file' ? content : nothing,
    ...change,
  }
}

export async function archiveOf(format: ArchiveFormat, entries: Iterable<ArchiveEntry>): Promise<Buffer> {
  async function* all() {
    yield* entries
  }
  return Buffer.concat(await Array.fromAsync(writeArchive(format, all())))
}

export async function writeArchiveTo(path: string, format: ArchiveFormat, entries: Iterable<ArchiveEntry>) {
  writeFileSync(path, await archiveOf(format, entries))
}
