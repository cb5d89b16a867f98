// `gamekeeper server rm|undelete`
import type { Client, DeletionPlan, Server } from '../../sdk/index.ts'
import { command } from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError, UsageError } from '../exit-codes.ts'
import { createProgress } from '../progress.ts'
import { findServer } from '../server-reference.ts'
import { formatSize, formatTime } from '../units.ts'

export const rm = command({
  summary: 'Delete a server',
  description:
    'Shows what that frees, then asks for the name of the server; without a terminal, pass it with --confirm. ' +
    'A deleted server can be brought back for some days with `gamekeeper server undelete`, unless --purge is given.',
  args: ['server'],
  options: {
    confirm: { type: 'string', value: 'NAME', help: 'The exact name of the server' },
    purge: { type: 'boolean', help: 'Delete for good at once, even if already deleted' },
    'no-wait': { type: 'boolean', help: 'Return once the deletion has started' },
  },
  examples: [
    'gamekeeper server rm Castle',
    'gamekeeper server rm Castle --confirm Castle',
    'gamekeeper server rm srv_01k9zq6m3t8v5w2x7y4c1b6d9e --purge',
  ],
  async run(context, options, { server: reference }) {
    const client = context.client()
    const { signal } = context.io
    const server = await findServer(client, reference, signal)
    const purge = options.purge ?? false
    await confirm(context, client, server, { given: options.confirm, purge })
    if (options['no-wait']) {
      const job = await client.servers.delete(server.id, server.name, { signal, purge })
      if (context.json) context.print(job)
      else context.say(`${server.name} is being deleted by ${job.id}.`)
      return undefined
    }
    await deleteAndShow(context, client, server, purge)
    if (context.json) context.print({ id: server.id, name: server.name, deleted: true, purged: purge })
    else context.say(purge ? `Purged ${server.name}.` : `Deleted ${server.name}.`)
    return undefined
  },
})

export const undelete = command({
  summary: 'Bring a deleted server back',
  description: 'With its files, backups, schedules, names and settings intact.',
  args: ['server'],
  options: {},
  examples: ['gamekeeper server undelete Castle'],
  async run(context, _options, { server: reference }) {
    const client = context.client()
    const { signal } = context.io
    const { id } = await findServer(client, reference, signal, { deleted: true })
    const server = await client.servers.undeleteAndWait(id, { signal })
    if (context.json) context.print(server)
    else context.say(`${server.name} is back.`)
    return undefined
  },
})

async function deleteAndShow(context: Context, client: Client, server: Server, purge: boolean): Promise<void> {
  const progress = createProgress(context.io.stderr, { quiet: context.json })
  try {
    await client.servers.deleteAndWait(server.id, server.name, {
      purge,
      signal: context.io.signal,
      onProgress: (job) => progress.update(`Deleting ${server.name}`, job.progress),
    })
  } finally {
    progress.end()
  }
}

async function confirm(
  context: Context,
  client: Client,
  server: Server,
  { given, purge }: { given: string | undefined; purge: boolean },
): Promise<void> {
  if (given === undefined && !context.canAsk) {
    throw new UsageError(
      'Deleting a server needs --confirm with its name.',
      `Add --confirm ${JSON.stringify(server.name)}.`,
    )
  }
  const answer = given ?? (await ask(context, client, server, purge))
  if (answer !== server.name) throw new CommandError('That is not the name of the server; nothing was deleted.')
}

async function ask(context: Context, client: Client, server: Server, purge: boolean): Promise<string> {
  const plan = await client.servers.planDeletion(server.id, { signal: context.io.signal })
  context.note(`This deletes ${server.name} with ${describe(plan)}.`)
  const until = formatTime(plan.purgeAt)
  context.note(purge ? 'It cannot be brought back.' : `It can be brought back until ${until}.`)
  return context.ask('Type its name to continue: ')
}

function describe({ frees: { files, trash, backups, subdomains } }: DeletionPlan): string {
  const parts = [
    `${formatSize(files.sizeBytes + trash.sizeBytes)} of files`,
    `${backups.count} ${backups.count === 1 ? 'backup' : 'backups'} (${formatSize(backups.storedBytes)})`,
    ...(subdomains.length > 0 ? [`the names ${subdomains.join(', ')}`] : []),
  ]
  return parts.join(', ')
}
