// One server on a real disk, for the tests of this folder.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type ErrorCode, isFailure } from '../../contract/errors.ts'
import { layout } from '../layout.ts'
import { type AgentFilesOptions, createAgentFiles } from './index.ts'
import { fillTree, makeTree } from './trees.testing.ts'

export const serverId = 'srv_test'

export const code = (expected: ErrorCode) => (error: unknown) => isFailure(error, expected)

let requests = 0
export const request = <T extends object>(fields: T) => ({ serverId, requestId: `req_${++requests}`, ...fields })

export async function startServer(
  t: TestContext,
  files: Record<string, string | Uint8Array> = {},
  options: Partial<Pick<AgentFilesOptions, 'now' | 'recordFreed' | 'onUnexpected'>> = {},
) {
  const places = layout(makeTree(t, { [`servers/${serverId}/files/`]: '' }))
  const folders = places.server(serverId)
  fillTree(folders.files, files)
  const unexpected: unknown[] = []
  const agent = createAgentFiles({ layout: places, onUnexpected: (error) => unexpected.push(error), ...options })
  await agent.start()
  await agent.sweep()
  t.after(async () => {
    await agent.stop()
    assert.deepEqual(unexpected, [])
  })
  const at = (path: string) => join(folders.files, path)
  return { agent, folders, at, server: agent.server(serverId), tree: () => treeOf(folders.files) }
}

export function treeOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
}

export async function* bytes(...chunks: string[]) {
  for (const chunk of chunks) yield Buffer.from(chunk)
}
