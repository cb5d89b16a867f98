// `gamekeeper files cat|edit`: what is in a file, shown or changed in an editor on this machine.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openAsBlob } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type Client, isApiError } from '../../../sdk/index.ts'
import { command } from '../../command.ts'
import type { Context } from '../../context.ts'
import { CommandError, EXIT, exitCodeOf, UsageError } from '../../exit-codes.ts'
import { serverIdOf } from '../../server-reference.ts'
import { createLineCleaner, safe } from '../../text.ts'

export const cat = command({
  summary: 'Print files',
  description: 'Prints them unchanged; on a terminal, control characters are escaped.',
  args: ['server', 'path...'],
  options: {},
  examples: ['gamekeeper files cat Castle /server.properties', 'gamekeeper files cat Castle /ops.json /whitelist.json'],
  async run(context, _options, { server, path: paths }) {
    const client = context.client()
    const { signal, stdout } = context.io
    const serverId = await serverIdOf(client, server, signal)
    for (const path of paths) {
      const { bytes } = await client.files.read(serverId, path, { signal })
      for await (const chunk of stdout.isTTY ? bytes.pipeThrough(createLineCleaner()) : bytes) {
        if (!stdout.write(chunk)) await once(stdout, 'drain', { signal })
      }
    }
    return undefined
  },
})

export const edit = command({
  summary: 'Edit a file in your editor',
  description:
    'In a copy on this machine, with VISUAL or EDITOR, else vi. It is written back only if nobody has changed the file\n' +
    'meanwhile; otherwise nothing is written and your version is kept in the copy. A file that is not there is made.',
  args: ['server', 'path'],
  options: {},
  examples: ['gamekeeper files edit Castle /server.properties', 'EDITOR=nano gamekeeper files edit Castle /ops.json'],
  async run(context, _options, { server, path }) {
    const name = basename(path)
    if (name === '' || name === '.' || name === '..' || name.includes('\0')) {
      throw new UsageError(`${JSON.stringify(path)} is not the path of a file.`)
    }
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    const original = await readOriginal(context, client, serverId, path)
    const folder = await mkdtemp(join(tmpdir(), 'gamekeeper-edit-'))
    const draft: Draft = { serverId, path, local: join(folder, name), original }
    await writeFile(draft.local, original?.bytes ?? '', { mode: 0o600 })
    const isWritten = await editAndWrite(context, client, draft)
    await rm(folder, { recursive: true, force: true })
    if (context.json) context.print({ path, written: isWritten })
    else context.say(isWritten ? `Written ${safe(path)}` : 'Nothing was changed.')
    return undefined
  },
})

interface Draft {
  serverId: string
  path: string
  local: string
  /** Null for a file that is not there yet. */
  original: { bytes: Buffer; etag: string } | null
}

async function readOriginal(context: Context, client: Client, serverId: string, path: string) {
  try {
    const { bytes, etag } = await client.files.read(serverId, path, { signal: context.io.signal })
    const content = await bytesOf(bytes)
    if (etag === null)
      throw new CommandError('The service did not report the version of the file; nothing was changed.')
    return { bytes: content, etag }
  } catch (error) {
    if (!isApiError(error, 'not_found')) throw error
    // A missing file may be made; a missing server may not.
    await client.files.list(serverId, { limit: 1 }, { signal: context.io.signal })
    context.note(`${safe(path)} is a new file.`)
    return null
  }
}

/** Whatever goes wrong once the editor has been open, what was typed is kept and its place is said. */
async function editAndWrite(context: Context, client: Client, draft: Draft): Promise<boolean> {
  const { local, original } = draft
  try {
    await openEditor(context.environment.editor, local)
    const edited = await readFile(local)
    if (edited.equals(original?.bytes ?? Buffer.alloc(0))) return false
    await writeBack(context, client, draft, edited)
    return true
  } catch (error) {
    const kept = `Your version is kept in ${local}.`
    if (context.io.signal.aborted) context.io.stderr.write(`${kept}\n`)
    const reason = error instanceof Error ? error.message : String(error)
    throw new CommandError(`${safe(reason)}\n${kept}`, exitCodeOf(error), codeOf(error))
  }
}

/** By a shell, since EDITOR may have options: `code --wait`. */
async function openEditor(editor: string, local: string): Promise<void> {
  const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, 'sh', local], { stdio: 'inherit' })
  const [code, signal] = await once(child, 'exit')
  if (code !== 0) throw new CommandError(`The editor exited with ${code ?? signal}; nothing was written.`)
}

async function writeBack(
  { io }: Context,
  client: Client,
  { serverId, path, local, original }: Draft,
  edited: Buffer,
): Promise<void> {
  const condition = original === null ? { overwrite: false } : { ifMatch: original.etag }
  try {
    await client.files.write(serverId, path, await openAsBlob(local), { ...condition, signal: io.signal })
  } catch (error) {
    if (!isApiError(error, 'precondition_failed', 'already_exists', 'not_found')) throw error
    // An attempt that was sent again after its answer got lost meets the version that it has written itself.
    const isOurs = await client.files.read(serverId, path, { signal: io.signal }).then(
      async ({ bytes }) => edited.equals(await bytesOf(bytes)),
      () => false,
    )
    if (!isOurs) {
      const conflict = `${path} was changed on the server meanwhile; nothing was written.`
      throw new CommandError(conflict, EXIT.conflict, error.code)
    }
  }
}

const bytesOf = async (bytes: ReadableStream<Uint8Array>) => Buffer.concat(await Array.fromAsync(bytes))

const codeOf = (error: unknown) =>
  error instanceof CommandError || isApiError(error) ? (error as { code: string }).code : 'failed'
