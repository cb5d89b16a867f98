// A server on the command line is its id or its name.
import { type Client, isApiError, type Server } from '../sdk/index.ts'
import { CommandError, EXIT } from './exit-codes.ts'

const ID = /^srv_[0-9a-z]+$/

/** Asks the service only for a name. A token without `servers:read` still knows the names of the servers that it is for. */
export async function serverIdOf(client: Client, reference: string, signal: AbortSignal): Promise<string> {
  if (ID.test(reference)) return reference
  try {
    return (await findByName(client, reference, signal)).id
  } catch (error) {
    if (!isApiError(error, 'forbidden')) throw error
    const { servers } = await client.tokens.own({ signal })
    // For all servers, but without the scope: it can use ids only.
    if (servers === '*') throw error
    return theOne(servers, reference).id
  }
}

export function findServer(
  client: Client,
  reference: string,
  signal: AbortSignal,
  { deleted = false }: { deleted?: boolean } = {},
): Promise<Server> {
  return ID.test(reference)
    ? client.servers.read(reference, { signal })
    : findByName(client, reference, signal, deleted)
}

async function findByName(client: Client, name: string, signal: AbortSignal, deleted = false): Promise<Server> {
  const similar: Server[] = []
  for await (const server of client.servers.all({ q: name, limit: 100, ...(deleted ? { deleted } : {}) }, { signal })) {
    similar.push(server)
  }
  return theOne(similar, name, deleted)
}

function theOne<S extends { id: string; name: string }>(similar: readonly S[], name: string, deleted = false): S {
  const found = similar.filter((server) => server.name === name)
  const [server, ...others] = found
  if (!server) throw absent(similar, name, deleted)
  if (others.length > 0) {
    const ids = found.map(({ id }) => id).join(', ')
    throw new CommandError(`${found.length} servers are named "${name}". Use an id: ${ids}`, EXIT.conflict)
  }
  return server
}

function absent(similar: readonly { name: string }[], name: string, deleted: boolean): CommandError {
  const close = similar.find((server) => server.name.toLowerCase() === name.toLowerCase()) ?? similar[0]
  const list = `"gamekeeper server ls${deleted ? ' --deleted' : ''}" lists them.`
  const hint = close ? `Did you mean ${JSON.stringify(close.name)}?` : list
  return new CommandError(`No ${deleted ? 'deleted ' : ''}server is named "${name}". ${hint}`, EXIT.notFound)
}

/** As many as asked for, from an endless supply. */
export async function take<T>(items: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = []
  if (count === 0) return taken
  for await (const item of items) if (taken.push(item) >= count) break
  return taken
}
