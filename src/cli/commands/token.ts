// `gamekeeper token create|ls|rm|rescue`
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { SCOPES } from '../../contract/scopes.ts'
import type { MintedToken, NewToken, Token } from '../../sdk/index.ts'
import { command, type Family } from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError } from '../exit-codes.ts'
import { readGrant } from '../grants.ts'
import { type Column, formatTable } from '../text.ts'
import { formatAgo, formatTime, readTime } from '../units.ts'

const create = command({
  summary: 'Create a token',
  description:
    'Only the value is printed to standard output, once, or written to a file that only you can read.\n' +
    `Scopes: ${SCOPES.join(', ')}.`,
  args: ['name'],
  options: {
    scope: {
      type: 'string',
      multiple: true,
      value: 'SCOPE',
      help: 'What it may do; may be repeated or comma-separated',
    },
    server: { type: 'string', multiple: true, value: 'SERVER', help: 'A server it may access; all by default' },
    expires: { type: 'string', value: 'TIME', help: 'When it expires: a time, or a duration such as 30d' },
    output: { type: 'string', value: 'FILE', help: 'Write the value to a new file instead' },
  },
  examples: [
    'gamekeeper token create nightly --scope backups:read,backups:write --server Castle --expires 90d',
    'gamekeeper token create ops --scope "*" --output ops.token',
  ],
  async run(context, options, { name }) {
    const client = context.client()
    const { signal } = context.io
    const body: NewToken = {
      name,
      ...(await readGrant(context, options)),
      ...(options.expires ? { expiresAt: readTime(options.expires, '--expires', 'future', context.now()) } : {}),
    }
    const mint = () => client.tokens.create(body, { signal })
    const minted = options.output === undefined ? await mint() : await mintInto(options.output, mint)
    present(context, minted, options.output)
    return undefined
  },
})

/** The file is there before the token is: a value that cannot be kept must not be made. */
async function mintInto(path: string, mint: () => Promise<MintedToken>): Promise<MintedToken> {
  let file: number
  try {
    file = openSync(path, 'wx', 0o600)
  } catch (error) {
    throw new CommandError(
      `${path} cannot be created (${(error as NodeJS.ErrnoException).code}); no token was created.`,
    )
  }
  try {
    const minted = await mint().catch((error) => {
      rmSync(path, { force: true })
      throw error
    })
    keep(file, path, minted)
    return minted
  } finally {
    closeSync(file)
  }
}

function keep(file: number, path: string, { id, token: value }: MintedToken): void {
  try {
    writeSync(file, `${value}\n`)
    fsyncSync(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new CommandError(`${path} could not be written (${code}). The value of ${id} is lost: revoke it.`)
  }
}

function present(context: Context, minted: MintedToken, file: string | undefined): void {
  const { token: value, ...record } = minted
  if (context.json) {
    context.print(file === undefined ? minted : { ...record, file })
    return
  }
  const reach = minted.servers === '*' ? 'all servers' : minted.servers.join(', ')
  const until = minted.expiresAt === null ? 'until it is revoked' : `until ${formatTime(minted.expiresAt)}`
  context.note(`${minted.id} may use ${minted.scopes.join(', ')} on ${reach}, ${until}.`)
  if (file === undefined) context.note('Its value is shown only once:')
  context.say(file === undefined ? value : `The token is in ${file}.`)
}

const ls = command({
  summary: 'List tokens that are not revoked, newest first',
  args: [],
  options: {},
  examples: ['gamekeeper token ls', 'gamekeeper token ls --json'],
  async run(context) {
    const tokens = await Array.fromAsync(context.client().tokens.all({ limit: 100 }, { signal: context.io.signal }))
    if (context.json) context.print(tokens)
    else context.say(formatTable(tokens, columnsFor(context), context.paint))
    return undefined
  },
})

const rm = command({
  summary: 'Revoke tokens immediately',
  args: ['tokens...'],
  options: {},
  examples: ['gamekeeper token rm tok_01k9zq6m3t8v5w2x7y4c1b6d9e'],
  async run(context, _options, { tokens }) {
    const client = context.client()
    for (const id of tokens) {
      await client.tokens.revoke(id, { signal: context.io.signal })
      context.say(`Revoked ${id}.`)
    }
    if (context.json) context.print({ revoked: tokens })
    return undefined
  },
})

const rescue = command({
  summary: 'Create a token with full access, while the service is stopped',
  description:
    'For when the admin token is lost. It works on the data directory, and on the PostgreSQL of GAMEKEEPER_DATABASE_URL if\n' +
    'that is set, with the settings of the service and while the service is stopped. Only the value is printed, once,\n' +
    'to standard output. Revoke the lost token afterwards with "gamekeeper token rm".',
  args: [],
  options: { data: { type: 'string', value: 'DIR', help: 'The data directory; GAMEKEEPER_DATA_DIR, else ./data' } },
  examples: ['gamekeeper token rescue', 'gamekeeper token rescue --data /srv/gamekeeper'],
  async run(context, { data }) {
    // Only now: other commands do not wait for the service to be read from disk.
    const { rescueToken } = await import('./serve.ts')
    // Before the token is kept: a value that nobody has seen must not be made.
    const show = (value: string) =>
      context.hand(`${context.json ? JSON.stringify({ token: value }) : value}\n`).catch((error) => {
        throw new CommandError(`The token could not be shown (${error.code}); none was created.`)
      })
    const { id } = await rescueToken(context.environment.all, { data }, show)
    context.note(`${id} has full access until it is revoked. Its value is shown only once.`)
    return undefined
  },
})

const columnsFor = ({ now }: Context): Column<Token>[] => [
  { title: 'NAME', cell: ({ name }) => name, style: () => 'cyan' },
  { title: 'ID', cell: ({ id }) => id },
  { title: 'SCOPES', cell: ({ scopes }) => scopes.join(',') },
  { title: 'SERVERS', cell: ({ servers }) => (servers === '*' ? 'all' : String(servers.length)), right: true },
  { title: 'EXPIRES', cell: ({ expiresAt }) => formatAgo(expiresAt, now()) },
  { title: 'LAST USED', cell: ({ lastUsedAt }) => formatAgo(lastUsedAt, now()) },
  { title: 'CREATED', cell: ({ createdAt }) => formatAgo(createdAt, now()) },
]

export const token: Family = { subcommands: { create, ls, rm, rescue } }
