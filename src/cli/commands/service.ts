// `gamekeeper service`: makes this installation a service of the machine, run by systemd.
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { command, type Family } from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError, UsageError } from '../exit-codes.ts'
import { type Unit, unitText } from './service-unit.ts'

const USER = 'gamekeeper'
const DATA_DIR = '/var/lib/gamekeeper'
const UNIT_FILE = '/etc/systemd/system/gamekeeper.service'
const SETTINGS_FILE = '/etc/gamekeeper/gamekeeper.env'

interface Step {
  what: string
  /** Whether there was anything to do. */
  run(): boolean
}

const install = command({
  summary: 'Set this installation up as a systemd service',
  description:
    'Creates a system user, a data directory, a settings file with an admin token, and a hardened unit, each only if it\n' +
    'is missing; the unit is always rewritten. Starts nothing. Needs root, and systemd unless --root is given.',
  args: [],
  options: {
    'data-dir': { type: 'string', value: 'DIR', help: `The data directory; by default ${DATA_DIR}` },
    root: { type: 'string', value: 'DIR', help: 'Install into the system under DIR, such as an image root' },
    'dry-run': { type: 'boolean', help: 'Show the unit and the steps without taking them' },
  },
  examples: ['gamekeeper service install --dry-run', 'gamekeeper service install --data-dir /srv/gamekeeper'],
  async run(context, options) {
    const root = options.root ?? '/'
    const dataDir = options['data-dir'] ?? DATA_DIR
    // A unit splits its lines at blanks and takes % for itself.
    if (!isAbsolute(dataDir) || /[\s%"'\\$]/.test(dataDir))
      throw new UsageError('--data-dir must be an absolute path without blanks, quotes, % or $.')
    const unit = { ...program(), user: USER, dataDir, settingsFile: SETTINGS_FILE }
    const steps = planSteps(root, unit)
    if (options['dry-run']) {
      if (context.json)
        context.print({ unitFile: UNIT_FILE, unit: unitText(unit), steps: steps.map(({ what }) => what) })
      else showPlan(context, unit, steps)
      return undefined
    }
    refuseIfHindered(root, unit)
    const done = steps.map(({ what, run }) => ({ what, isNew: run() }))
    if (context.json) context.print({ unitFile: UNIT_FILE, unit: unitText(unit), steps: done })
    else showDone(context, root, unit, done)
    return undefined
  },
})

/** The Node that runs this, and the file that it was given. */
function program(): Pick<Unit, 'node' | 'main'> {
  return { node: process.execPath, main: process.argv[1] ?? '' }
}

function refuseIfHindered(root: string, { node, main }: Unit): void {
  if (process.getuid?.() !== 0)
    throw new CommandError(
      'Installing a service needs root. Run it with sudo, or with --dry-run to see what it would do.',
    )
  if (!existsSync(join(root, 'etc/passwd')))
    throw new CommandError(`${root} is not the root of a system: it has no etc/passwd.`)
  // The paths are those of the system that it is for.
  if (root !== '/') return
  if (!existsSync('/run/systemd/system'))
    throw new CommandError(
      'This machine is not run by systemd. "gamekeeper service install --dry-run" shows what to adapt.',
    )
  for (const path of [node, main])
    if (/[\s%"'\\$]/.test(path) || /^\/(root|home|tmp|run\/user)\//.test(path))
      throw new CommandError(
        `The service would not reach ${path}: it sees no home directories and no /tmp. ` +
          'Install the package for everybody ("npm install --global") and run this again.',
      )
}

function planSteps(root: string, unit: Unit): Step[] {
  const { user, dataDir, settingsFile } = unit
  return [
    { what: `the system user ${user}`, run: () => makeUser(root, unit) },
    { what: `the data directory ${dataDir}, for that user alone`, run: () => makeDataDir(root, unit) },
    {
      what: `the settings ${settingsFile}, for root alone, with an admin token`,
      run: () => {
        const path = join(root, settingsFile)
        if (existsSync(path)) return false
        write(path, newSettings(), 0o600)
        return true
      },
    },
    {
      what: `the unit ${UNIT_FILE}`,
      run: () => {
        const path = join(root, UNIT_FILE)
        if (existsSync(path) && readFileSync(path, 'utf8') === unitText(unit)) return false
        write(path, unitText(unit), 0o644)
        if (root === '/') must('systemctl', ['daemon-reload'])
        return true
      },
    },
  ]
}

function makeUser(root: string, { user, dataDir }: Unit): boolean {
  if (findUser(root, user)) return false
  const where = root === '/' ? [] : ['--prefix', root]
  const account = [
    '--system',
    '--user-group',
    '--no-create-home',
    '--home-dir',
    dataDir,
    '--shell',
    '/usr/sbin/nologin',
  ]
  must('useradd', [...where, ...account, user])
  return true
}

function makeDataDir(root: string, { user, dataDir }: Unit): boolean {
  const path = join(root, dataDir)
  const owner = findUser(root, user)
  if (!owner) throw new CommandError(`The user ${user} was created but is missing from ${join(root, 'etc/passwd')}.`)
  // One that is there belongs to whoever made it, and may hold everything.
  if (existsSync(path)) return false
  mkdirSync(path, { recursive: true })
  chmodSync(path, 0o700)
  chownSync(path, owner.uid, owner.gid)
  return true
}

function findUser(root: string, user: string): { uid: number; gid: number } | undefined {
  if (root === '/') {
    // Not every user is in /etc/passwd.
    const { status, stdout } = spawnSync('getent', ['passwd', user], { encoding: 'utf8' })
    return status === 0 ? idsOf(stdout) : undefined
  }
  const passwd = join(root, 'etc/passwd')
  const line = existsSync(passwd) ? readFileSync(passwd, 'utf8').split('\n') : []
  return line.filter((entry) => entry.startsWith(`${user}:`)).map(idsOf)[0]
}

function idsOf(line: string): { uid: number; gid: number } {
  const [, , uid, gid] = line.split(':')
  return { uid: Number(uid), gid: Number(gid) }
}

const newSettings =
  () => `# Settings of Gamekeeper, one NAME=value a line; docs/operating.md has them all. After a change: systemctl restart gamekeeper
GAMEKEEPER_ADMIN_TOKEN=gk_admin_${randomBytes(32).toString('hex')}
#GAMEKEEPER_HOST=0.0.0.0
#GAMEKEEPER_PUBLIC_URL=https://games.example.org
`

/** Beside, then in its place: half a unit is never read. */
function write(path: string, text: string, mode: number): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.new`, text, { mode })
  chmodSync(`${path}.new`, mode)
  renameSync(`${path}.new`, path)
}

function must(file: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(file, args, { encoding: 'utf8' })
  if (status !== 0) throw new CommandError(`${file} failed: ${(stderr ?? error?.message ?? '').trim()}`)
}

function showPlan(context: Context, unit: Unit, steps: readonly Step[]): void {
  context.say(unitText(unit))
  for (const { what } of steps) context.say(`would create if missing: ${what}`)
  context.say('\nNothing was done.')
}

function showDone(
  context: Context,
  root: string,
  { node, main }: Unit,
  steps: readonly { what: string; isNew: boolean }[],
): void {
  for (const { what, isNew } of steps) context.say(`${isNew ? 'created' : 'found  '} ${what}`)
  context.say(`\nThe admin token is in ${join(root, SETTINGS_FILE)}.`)
  if (root === '/') {
    context.say('To start the service, now and at every boot:')
    context.say('  systemctl enable --now gamekeeper\n  journalctl --unit gamekeeper --follow')
    return
  }
  const absent = [node, main].filter((path) => !existsSync(join(root, path)))
  if (absent.length > 0) context.note(`The unit runs ${absent.join(' and ')}: install that there, at the same path.`)
  context.say(`To start the service at every boot of that system:\n  systemctl --root ${root} enable gamekeeper`)
}

export const service: Family = { subcommands: { install } }
