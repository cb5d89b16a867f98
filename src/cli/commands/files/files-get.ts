// `gamekeeper files get`: a file as it is, a directory as an archive. It is written beside and appears when it is whole.
import { randomBytes } from 'node:crypto'
import { lstat, open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Download } from '../../../sdk/index.ts'
import { command } from '../../command.ts'
import type { Context } from '../../context.ts'
import { CommandError, EXIT } from '../../exit-codes.ts'
import { createProgress } from '../../progress.ts'
import { serverIdOf } from '../../server-reference.ts'
import { safe } from '../../text.ts'
import { formatSize } from '../../units.ts'
import { readFormat } from './files-jobs.ts'

export const get = command({
  summary: 'Download a file, or a directory as an archive',
  description:
    'To the current directory by default, or to standard output for "-". A download that breaks goes on by itself. The\n' +
    'file appears when all of it is there; one that is there already is replaced only with --force.',
  args: ['server', 'path', 'local?'],
  options: {
    format: { type: 'string', value: 'FORMAT', help: 'Archive format: zip, tar, tar.gz or tar.zst; zip by default' },
    force: { type: 'boolean', short: 'f', help: 'Replace an existing local file' },
  },
  examples: [
    'gamekeeper files get Castle /server.properties -',
    'gamekeeper files get Castle /world --format tar.zst',
    'gamekeeper files get Castle /world/level.dat /tmp/level.dat --force',
  ],
  async run(context, options, { server, path, local = '.' }) {
    const client = context.client()
    const { signal, stderr } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const progress = createProgress(stderr, { quiet: context.json || local === '-' })
    const download = await client.files.download(serverId, path, {
      signal,
      ...(options.format ? { format: readFormat(options.format) } : {}),
      onProgress: (bytesDone, bytesTotal) =>
        progress.update(basename(path), { bytesDone, bytesTotal, filesDone: 0, filesTotal: null }),
    })
    try {
      if (local === '-') await print(context, download)
      else await save(context, download, path, local, options.force ?? false)
    } catch (error) {
      await download.bytes.cancel().catch(() => {})
      throw error
    } finally {
      progress.end()
    }
    return undefined
  },
})

async function print({ io }: Context, { bytes }: Download): Promise<void> {
  for await (const chunk of bytes) {
    if (!io.stdout.write(chunk)) await new Promise<void>((resolve) => io.stdout.once('drain', resolve))
  }
}

async function save(context: Context, download: Download, path: string, local: string, force: boolean): Promise<void> {
  const target = await targetOf(local, download.name)
  const isTaken = await lstat(target).then(
    () => true,
    () => false,
  )
  if (isTaken && !force) throw new CommandError(`${target} already exists; --force replaces it.`, EXIT.conflict)
  const sizeBytes = await writeBeside(target, download.bytes)
  if (context.json) context.print({ path, local: target, sizeBytes })
  else context.say(`${safe(target)}  ${formatSize(sizeBytes)}`)
}

/** The name comes from the service: it is a name, and never a path. */
async function targetOf(local: string, name: string): Promise<string> {
  const isDirectory = local.endsWith('/') || (await stat(local).catch(() => null))?.isDirectory()
  if (!isDirectory) return local
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) {
    throw new CommandError('The service suggests a name that cannot be used here; name the file yourself.')
  }
  return join(local, name)
}

async function writeBeside(target: string, bytes: ReadableStream<Uint8Array>): Promise<number> {
  const beside = join(dirname(target), `.${basename(target).slice(0, 200)}.${randomBytes(6).toString('hex')}.part`)
  try {
    await using file = await open(beside, 'wx', 0o644).catch(explain)
    let sizeBytes = 0
    for await (const chunk of bytes) {
      await file.writeFile(chunk).catch(explain)
      sizeBytes += chunk.byteLength
    }
    await file.sync()
    await rename(beside, target).catch(explain)
    return sizeBytes
  } catch (error) {
    await rm(beside, { force: true })
    throw error
  }
}

function explain(error: NodeJS.ErrnoException): never {
  throw new CommandError(`It cannot be written here: ${error.message}.`)
}
