// `gamekeeper files put`: files and whole directories. Small files go together, large ones go one by one and go on by
// themselves after a break.
import { openAsBlob } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { ChunkReader, Client, Uploaded } from '../../../sdk/index.ts'
import { command } from '../../command.ts'
import type { Context } from '../../context.ts'
import { CommandError } from '../../exit-codes.ts'
import { createProgress } from '../../progress.ts'
import { serverIdOf } from '../../server-reference.ts'
import { safe } from '../../text.ts'
import { formatSize } from '../../units.ts'
import { type LocalFile, type LocalTree, readLocal } from './local-files.ts'

const SMALL_BYTES = 1024 * 1024
const TOGETHER_BYTES = 16 * 1024 * 1024
const TOGETHER_FILES = 500

export const put = command({
  summary: 'Upload files and directories',
  description:
    'Directories are sent with all they hold. An upload that breaks goes on by itself. A file that is there already is\n' +
    'replaced, and its former version goes to the trash. Symbolic links and special files are left out, and named.',
  args: ['server', 'local...'],
  options: {
    to: { type: 'string', value: 'PATH', help: 'The directory on the server; "/" by default' },
    as: { type: 'string', value: 'PATH', help: 'The path on the server, for a single file' },
    contents: { type: 'boolean', help: 'Send the contents of a directory, not the directory itself' },
    'no-overwrite': { type: 'boolean', help: 'Refuse to replace anything' },
  },
  examples: [
    'gamekeeper files put Castle lighting.jar map.jar --to /mods',
    'gamekeeper files put Castle ./world',
    'gamekeeper files put Castle ./old-server --contents',
    'gamekeeper files put Castle new.properties --as /server.properties',
  ],
  async run(context, options, { server, local }) {
    const tree = await readLocal(local, { as: options.as, isContents: options.contents ?? false })
    const client = context.client()
    const serverId = await serverIdOf(client, server, context.io.signal)
    const directory = options.as === undefined ? (options.to ?? '/') : '/'
    const uploaded = await send(context, client, serverId, tree, { directory, overwrite: !options['no-overwrite'] })
    for (const path of tree.leftOut) context.note(`Skipped ${safe(path)}`)
    if (context.json) context.print({ uploaded, leftOut: tree.leftOut })
    else context.say(summaryOf(uploaded))
    return undefined
  },
})

function summaryOf(uploaded: readonly Uploaded[]): string {
  const bytes = uploaded.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const [only, ...others] = uploaded
  return only && others.length === 0
    ? `${safe(only.path)}  ${formatSize(bytes)}`
    : `${uploaded.length} files  ${formatSize(bytes)}`
}

interface Target {
  directory: string
  overwrite: boolean
}

async function send(context: Context, client: Client, serverId: string, tree: LocalTree, target: Target) {
  const { signal, stderr } = context.io
  const progress = createProgress(stderr, { quiet: context.json })
  const bytesTotal = tree.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const filesTotal = tree.files.length
  const uploaded: Uploaded[] = []
  let bytesBefore = 0
  const show = (bytesNow: number) =>
    progress.update('Uploading', {
      bytesDone: bytesBefore + bytesNow,
      bytesTotal,
      filesDone: uploaded.length,
      filesTotal,
    })
  try {
    for (const batch of batchesOf(tree.files)) {
      const [first] = batch
      if (first && batch.length === 1)
        uploaded.push(await sendOne(client, serverId, first, { ...target, signal, onProgress: show }))
      else uploaded.push(...(await sendTogether(client, serverId, batch, { ...target, signal })))
      bytesBefore += batch.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
      show(0)
    }
    for (const path of tree.emptyDirectories) await makeDirectory(client, serverId, target.directory, path, signal)
  } finally {
    progress.end()
  }
  return uploaded
}

/** In the order in which they come; a batch of one is sent in pieces that can be gone on with. */
function* batchesOf(files: readonly LocalFile[]): Generator<LocalFile[]> {
  let batch: LocalFile[] = []
  let bytes = 0
  for (const file of files) {
    const isLarge = file.sizeBytes > SMALL_BYTES
    if (batch.length > 0 && (isLarge || bytes + file.sizeBytes > TOGETHER_BYTES || batch.length >= TOGETHER_FILES)) {
      yield batch
      batch = []
      bytes = 0
    }
    if (isLarge) yield [file]
    else {
      batch.push(file)
      bytes += file.sizeBytes
    }
  }
  if (batch.length > 0) yield batch
}

interface SendOptions extends Target {
  signal: AbortSignal
  onProgress?: (bytesDone: number) => void
}

async function sendOne(client: Client, serverId: string, file: LocalFile, options: SendOptions): Promise<Uploaded> {
  await using handle = await open(file.local).catch(unreadable)
  const source: ChunkReader = {
    sizeBytes: file.sizeBytes,
    read: (from, to) => readPiece(handle, from, to),
  }
  return await client.files.upload(serverId, source, { ...options, name: file.name })
}

async function readPiece(handle: FileHandle, from: number, to: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = Buffer.alloc(to - from)
  let done = 0
  while (done < bytes.length) {
    const { bytesRead } = await handle.read(bytes, done, bytes.length - done, from + done).catch(unreadable)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return bytes.subarray(0, done)
}

async function sendTogether(client: Client, serverId: string, batch: readonly LocalFile[], options: SendOptions) {
  const blobs = await Promise.all(
    batch.map(async ({ local, name }) => ({ name, blob: await openAsBlob(local).catch(unreadable) })),
  )
  const entries = await client.files.uploadMany(serverId, blobs, options)
  return entries.map(({ path, sizeBytes }) => ({ path, sizeBytes }))
}

async function makeDirectory(client: Client, serverId: string, directory: string, path: string, signal: AbortSignal) {
  const at = path.lastIndexOf('/')
  const above = `${directory.replace(/\/+$/, '')}/${path.slice(0, Math.max(0, at))}`
  await client.files.makeFolder(serverId, { name: path.slice(at + 1), path: above }, { signal })
}

function unreadable(error: NodeJS.ErrnoException): never {
  throw new CommandError(`It cannot be read: ${error.message}.`)
}
