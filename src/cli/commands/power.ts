// `gamekeeper start|stop|restart|kill SERVER`
import type { Client, PowerAction, PowerState, Server } from '../../sdk/index.ts'
import { command, type Family } from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../exit-codes.ts'
import { serverIdOf } from '../server-reference.ts'
import { safe } from '../text.ts'

/** No event tells of it: the state is asked for again. */
const ASK_EVERY_MS = 300

const UNDER_WAY: ReadonlySet<PowerState> = new Set(['starting', 'stopping'])

const GOALS: Record<PowerAction, PowerState> = {
  start: 'running',
  stop: 'stopped',
  restart: 'running',
  kill: 'stopped',
}

interface Words {
  summary: string
  description: string
}

const powerCommand = (action: PowerAction, { summary, description }: Words): Family => ({
  main: command({
    summary,
    description,
    args: ['server'],
    options: { 'no-wait': { type: 'boolean', help: 'Return once it has begun' } },
    examples: [`gamekeeper ${action} Castle`],
    async run(context, options, { server: reference }) {
      const client = context.client()
      const { signal } = context.io
      const serverId = await serverIdOf(client, reference, signal)
      const begun = await client.power[action](serverId, { signal })
      const server = options['no-wait'] ? begun : await settled(context, client, begun)
      if (context.json) context.print(server)
      else context.say(describe(context, server))
      const isAsWanted = options['no-wait'] || server.power.state === GOALS[action]
      if (!isAsWanted && !context.json) context.note(`See its last lines with: gamekeeper console ${server.id}`)
      return isAsWanted ? EXIT.ok : EXIT.failed
    },
  }),
})

async function settled(context: Context, client: Client, begun: Server): Promise<Server> {
  const { signal } = context.io
  let server = begun
  let step: string | null = null
  while (UNDER_WAY.has(server.power.state)) {
    if (server.power.step !== null && server.power.step !== step)
      context.note(`${server.name}: ${safe(server.power.step)}`)
    step = server.power.step
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS))
    if (signal.aborted) throw new CommandError('Interrupted; it goes on.', EXIT.interrupted)
    server = await client.servers.read(server.id, { signal })
  }
  return server
}

function describe({ paint }: Context, { name, power: { state, exit } }: Server): string {
  const shown = paint(state === 'running' ? 'green' : state === 'crashed' ? 'red' : 'dim', state)
  const how = exit?.signal ?? (exit?.code === null ? null : exit && `exit code ${exit.code}`)
  const ended = state === 'running' || exit === null ? '' : `: ${exit.reason}${how ? ` (${how})` : ''}`
  return `${safe(name)} is ${shown}${ended}.`
}

export const start = powerCommand('start', {
  summary: 'Start the game of a server',
  description: 'Waits until players can join. What can be known before is checked first.',
})
export const stop = powerCommand('stop', {
  summary: 'Stop the game of a server, letting it save',
  description: 'Waits until it has ended. A game that does not stop in time is killed.',
})
export const restart = powerCommand('restart', {
  summary: 'Stop the game of a server, and start it again',
  description: 'Waits until players can join again.',
})
export const kill = powerCommand('kill', {
  summary: 'End the game of a server at once',
  description: 'What it has not saved is lost. Works whatever else is under way.',
})
