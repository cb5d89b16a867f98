// `gamekeeper server install`
import { command } from '../command.ts'
import { createProgress } from '../progress.ts'
import { findServer } from '../server-reference.ts'

export const install = command({
  summary: 'Install the game of a server, or install it again',
  description:
    'Goes through the install steps of its template. Files that are there stay, unless a step writes over them. The console of\n' +
    'the server has what the steps say.',
  args: ['server'],
  options: {
    wipe: { type: 'boolean', help: 'Move everything that is there to the trash first' },
    start: { type: 'boolean', help: 'Start the game once it is installed' },
    'no-wait': { type: 'boolean', help: 'Return once the installation has started' },
  },
  examples: ['gamekeeper server install Castle', 'gamekeeper server install Castle --wipe --start'],
  async run(context, options, { server: reference }) {
    const client = context.client()
    const { signal } = context.io
    const server = await findServer(client, reference, signal)
    const { wipe = false, start = false } = options
    const started = await client.servers.install(server.id, { wipe, start }, { signal })
    if (options['no-wait']) {
      if (context.json) context.print(started)
      else context.say(`${server.name} is being installed by ${started.id}.`)
      return undefined
    }
    const progress = createProgress(context.io.stderr, { quiet: context.json })
    try {
      const job = await client.jobs.wait(server.id, started.id, {
        signal,
        onProgress: (each) => progress.update('Installing', each.progress),
      })
      if (context.json) context.print(job)
      else context.say(`Installed ${server.name}.`)
    } finally {
      progress.end()
    }
    return undefined
  },
})
