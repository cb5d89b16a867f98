// `gamekeeper files pack|unpack|pull`: work that goes on in the service, waited for by default.
import { ARCHIVE_FORMATS } from '../../../contract/files/files.ts'
import type { ArchiveFormat, Client, Job } from '../../../sdk/index.ts'
import { command, type Options } from '../../command.ts'
import type { Context } from '../../context.ts'
import { UsageError } from '../../exit-codes.ts'
import { createProgress } from '../../progress.ts'
import { serverIdOf } from '../../server-reference.ts'
import { safe } from '../../text.ts'

const COMMON = {
  'no-wait': { type: 'boolean', help: 'Return once it has started; follow it with "gamekeeper jobs"' },
} as const satisfies Options
const OVERWRITE = { type: 'boolean', help: 'Replace what is there; it goes to the trash' } as const

export const pack = command({
  summary: 'Pack files and directories into an archive on the server',
  args: ['server', 'path...'],
  options: {
    to: { type: 'string', value: 'PATH', help: 'The archive; named after what is packed by default' },
    format: { type: 'string', value: 'FORMAT', help: `${ARCHIVE_FORMATS.join(', ')}; zip, or what --to ends in` },
    ...COMMON,
  },
  examples: ['gamekeeper files pack Castle /world --to /world.tar.zst', 'gamekeeper files pack Castle /world /plugins'],
  run: (context, options, { server, path: paths }) =>
    work(context, server, 'Packing', options['no-wait'], (client, serverId) =>
      client.files.pack(
        serverId,
        {
          files: paths.map((path) => path.replace(/^\/+|\/+$/g, '')),
          ...(options.format ? { format: readFormat(options.format) } : {}),
          ...(options.to ? { target: options.to } : {}),
        },
        { signal: context.io.signal },
      ),
    ),
})

export const unpack = command({
  summary: 'Unpack an archive that is on the server',
  description: 'zip, tar, tar.gz or tar.zst. If anything is wrong with it, nothing is unpacked.',
  args: ['server', 'path', 'directory?'],
  options: { overwrite: OVERWRITE, ...COMMON },
  examples: [
    'gamekeeper files unpack Castle /world.zip',
    'gamekeeper files unpack Castle /mods.tar.gz /mods --overwrite',
  ],
  run: (context, options, { server, path, directory }) =>
    work(context, server, 'Unpacking', options['no-wait'], (client, serverId) =>
      client.files.unpack(
        serverId,
        { path, overwrite: options.overwrite ?? false, ...(directory ? { directory } : {}) },
        { signal: context.io.signal },
      ),
    ),
})

export const pull = command({
  summary: 'Fetch a file from a URL into the server',
  args: ['server', 'url', 'directory?'],
  options: {
    name: { type: 'string', value: 'NAME', help: 'Name of the file; taken from the URL by default' },
    overwrite: OVERWRITE,
    ...COMMON,
  },
  examples: ['gamekeeper files pull Castle https://example.org/mods/lighting.jar /mods'],
  run: (context, options, { server, url, directory }) =>
    work(context, server, 'Fetching', options['no-wait'], (client, serverId) =>
      client.files.pull(
        serverId,
        {
          url,
          overwrite: options.overwrite ?? false,
          ...(directory ? { directory } : {}),
          ...(options.name ? { name: options.name } : {}),
        },
        { signal: context.io.signal },
      ),
    ),
})

export function readFormat(text: string): ArchiveFormat {
  const format = ARCHIVE_FORMATS.find((known) => known === text)
  if (!format) throw new UsageError(`--format must be one of ${ARCHIVE_FORMATS.join(', ')}.`)
  return format
}

/** Interrupted, it cancels what it has begun. */
async function work(
  context: Context,
  server: string,
  label: string,
  noWait: boolean | undefined,
  start: (client: Client, serverId: string) => Promise<Job>,
): Promise<undefined> {
  const client = context.client()
  const { signal } = context.io
  const serverId = await serverIdOf(client, server, signal)
  const begun = await start(client, serverId)
  const job = noWait ? begun : await wait(context, client, serverId, begun, label)
  if (context.json) context.print(job)
  else if (noWait) context.say(`Started as ${job.id}.`)
  else context.say(`Done: ${safe((job.result as { path?: string } | null)?.path ?? '')}`)
  return undefined
}

async function wait(context: Context, client: Client, serverId: string, job: Job, label: string): Promise<Job> {
  const { signal, stderr } = context.io
  const progress = createProgress(stderr, { quiet: context.json })
  try {
    return await client.jobs.wait(serverId, job.id, {
      signal,
      onProgress: (now) => progress.update(label, now.progress),
    })
  } catch (error) {
    if (signal.aborted) await client.jobs.cancel(serverId, job.id).catch(() => {})
    throw error
  } finally {
    progress.end()
  }
}
