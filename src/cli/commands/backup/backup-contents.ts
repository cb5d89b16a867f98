// `gamekeeper backup download|browse`: what is inside a backup, listed or brought here.
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ARCHIVE_FORMATS } from '../../../contract/files/files.ts'
import type { BackupFile, BackupFormat } from '../../../sdk/index.ts'
import { command } from '../../command.ts'
import { UsageError } from '../../exit-codes.ts'
import { createProgress } from '../../progress.ts'
import { backupIdOf } from '../../references.ts'
import { serverIdOf } from '../../server-reference.ts'
import { type Column, formatTable } from '../../text.ts'
import { formatSize, formatTime } from '../../units.ts'

export const download = command({
  summary: 'Download a backup, or one file from it',
  description: 'Writes to standard output with --output -. An existing file is replaced once the download is complete.',
  args: ['server', 'backup'],
  options: {
    format: { type: 'string', value: 'FORMAT', help: `${ARCHIVE_FORMATS.join(', ')}; tar.zst by default` },
    path: { type: 'string', value: 'PATH', help: 'Only this file, as it is' },
    output: { type: 'string', short: 'o', value: 'FILE', help: 'Output file; named after the backup by default' },
  },
  examples: [
    'gamekeeper backup download Castle latest --format zip',
    'gamekeeper backup download Castle bkp_01k9zq6m3t8v5w2x7y4c1b6d9e --path /server.properties -o -',
  ],
  async run(context, options, { server, backup: reference }) {
    const client = context.client()
    const { signal, stdout, stderr } = context.io
    const format = readFormat(options.format)
    const serverId = await serverIdOf(client, server, signal)
    const backupId = await backupIdOf(context, client, serverId, reference)
    const { bytes, sizeBytes } =
      options.path === undefined
        ? await client.backups.download(serverId, backupId, format, { signal })
        : await client.backups.readFile(serverId, backupId, options.path, { signal })
    const source = Readable.fromWeb(bytes as never)
    if (options.output === '-') {
      await pipeline(source, stdout, { signal, end: false })
      return undefined
    }
    const target = options.output ?? (options.path ? nameOf(options.path) : `${backupId}.${format}`)
    const progress = createProgress(stderr, { quiet: context.json })
    let bytesDone = 0
    const counter = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytesDone += chunk.length
        progress.update('Downloading', { filesDone: 0, filesTotal: null, bytesDone, bytesTotal: sizeBytes })
        done(null, chunk)
      },
    })
    const draft = `${target}.part`
    try {
      await pipeline(source, counter, createWriteStream(draft), { signal })
      await rename(draft, target)
    } catch (error) {
      await rm(draft, { force: true })
      throw error
    } finally {
      progress.end()
    }
    if (context.json) context.print({ file: target, sizeBytes: bytesDone })
    else context.say(`${target}: ${formatSize(bytesDone)}.`)
    return undefined
  },
})

export const browse = command({
  summary: 'List a directory inside a backup',
  args: ['server', 'backup', 'path?'],
  options: {},
  examples: ['gamekeeper backup browse Castle latest /world'],
  async run(context, _options, { server, backup: reference, path = '/' }) {
    const client = context.client()
    const { signal } = context.io
    const serverId = await serverIdOf(client, server, signal)
    const backupId = await backupIdOf(context, client, serverId, reference)
    const files = await Array.fromAsync(client.backups.browseAll(serverId, backupId, { path, limit: 100 }, { signal }))
    if (context.json) context.print(files)
    else if (files.length === 0) context.note('It is empty.')
    else context.say(formatTable(files, COLUMNS, context.paint))
    return undefined
  },
})

const COLUMNS: Column<BackupFile>[] = [
  { title: 'MODE', cell: ({ mode }) => mode },
  { title: 'SIZE', cell: ({ kind, sizeBytes }) => (kind === 'file' ? formatSize(sizeBytes) : ''), right: true },
  { title: 'MODIFIED', cell: ({ modifiedAt }) => formatTime(modifiedAt) },
  {
    title: 'NAME',
    cell: ({ name, kind, symlinkTarget }) =>
      kind === 'directory' ? `${name}/` : kind === 'symlink' ? `${name} -> ${symlinkTarget}` : name,
  },
]

function readFormat(text = 'tar.zst'): BackupFormat {
  const format = ARCHIVE_FORMATS.find((known) => known === text)
  if (!format) throw new UsageError(`--format must be one of ${ARCHIVE_FORMATS.join(', ')}.`)
  return format
}

const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1) || 'file'
