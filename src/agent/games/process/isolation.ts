// The command line that a game is started by: with bubblewrap, a game sees a read-only system, its own files and a private
// /tmp, and neither what the service keeps nor another server's files. As root, it runs as a user of its own, with or without it.
import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync, lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { GameLimits } from '../../../contract/agent/agent-games.ts'
import { fail } from '../../../contract/errors.ts'
import { DEFAULT_PROCESSES_MAX } from '../../../contract/fixed-limits.ts'
import type { Launch } from '../../../contract/games/launch.ts'
import type { Runtime } from '../../../contract/games/power.ts'
import { INFO_FD, type ProcessOrder } from '../supervisor/protocol.ts'
import type { Controller } from './cgroups.ts'
import { environmentLines, handOver } from './hand-over.ts'
import { maskArguments } from './masks.ts'

const run = promisify(execFile)

/** Where programs are looked for, for a game as well as for what starts it. */
export const PROGRAM_FOLDERS = [
  '/usr/local/sbin',
  '/usr/local/bin',
  '/usr/sbin',
  '/usr/bin',
  '/usr/games',
  '/usr/local/games',
]
export const PATH = [...PROGRAM_FOLDERS, '/sbin', '/bin'].join(':')
/** Where a game finds its files. */
const FILES_INSIDE = '/server'
/** bubblewrap brings the loopback of it up. */
export const NETWORK_OF_ITS_OWN = ['--unshare-net']
const TMP_BYTES = 256 * 1024 * 1024

/** The system, read-only. Of /etc only what programs need to run and to look up names: settings and keys lie there too. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt']
const OF_ETC = [
  ...[
    'alternatives',
    'ca-certificates',
    'fonts',
    'gai.conf',
    'group',
    'host.conf',
    'hosts',
    'ld.so.cache',
    'ld.so.conf',
  ],
  ...['ld.so.conf.d', 'localtime', 'locale.alias', 'mime.types', 'nsswitch.conf', 'passwd', 'pki', 'protocols'],
  ...['resolv.conf', 'services', 'timezone'],
]
const OF_ETC_SSL = ['/etc/ssl/certs', '/etc/ssl/openssl.cnf']

export interface GameUser {
  uid: number
  gid: number
}

/** `path` of bubblewrap. */
export type Isolation = { kind: 'bubblewrap'; path: string } | { kind: 'user' } | { kind: 'none' }

export interface Wrapping {
  launch: Launch
  filesFolder: string
  limits: GameLimits
  user: GameUser | null
  isolation: Isolation
  controllers: ReadonlySet<Controller>
  /** Of the service's own: the game does not see them, wherever they are. */
  hidden: readonly string[]
  /** `loopback`: one of its own, with nothing but itself in it. Only with bubblewrap. */
  network?: 'machine' | 'loopback' | undefined
}

export interface Wrapped {
  command: ProcessOrder['command']
  environment: string
  /** Whose processes are all the game's, and nothing else ends them. */
  user: number | null
  isBubblewrap: boolean
  runtime: Runtime
}

/** Undefined where it is not installed. */
export function findProgram(name: string): string | undefined {
  return PROGRAM_FOLDERS.map((folder) => join(folder, name)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Null where it is not installed, or the system does not let it do its work, with these options too. Fails with
 * `isolation_missing` where that could not be found out: a machine that is short of something for a moment isolates no less.
 */
export async function findBubblewrap(options: readonly string[] = []): Promise<string | null> {
  const path = findProgram('bwrap')
  if (!path) return null
  try {
    await run(path, [...systemArguments(), '--unshare-pid', '--proc', '/proc', ...options, '--', 'true'], { env: {} })
    return path
  } catch (error) {
    if (hasAnswered(error)) return null
    throw fail('isolation_missing', 'bubblewrap could not be tried just now. Start the game again.', error)
  }
}

/** The last is what the kernel says of namespaces, which a game can use up. */
const PASSES = /temporarily unavailable|Cannot allocate memory|Too many open files|No space left on device/

/** Whether it ran, and said what it may not do. */
function hasAnswered(error: unknown): boolean {
  if (!(error instanceof Error) || !('stderr' in error) || !('code' in error)) return false
  return typeof error.code === 'number' && !PASSES.test(String(error.stderr))
}

export function wrap(wrapping: Wrapping): Wrapped {
  const { launch, filesFolder, user, isolation, controllers, hidden, network } = wrapping
  const bubblewrap = isolation.kind === 'bubblewrap' ? isolation.path : null
  const home = bubblewrap ? FILES_INSIDE : filesFolder
  const environment = environmentLines({
    ...launch.environment,
    ...{ HOME: home, PATH, TERM: 'dumb', LANG: 'C.UTF-8' },
  })
  const { line: limited, enforced } = limitLine(wrapping)
  const workingFolder = join(home, launch.workingDirectory)
  const runtime: Runtime = {
    kind: 'process',
    image: null,
    isolation: isolation.kind,
    user: user?.uid ?? null,
    enforced: {
      memory: controllers.has('memory') ? 'cgroup' : enforced.memory,
      cpu: controllers.has('cpu') ? 'cgroup' : 'none',
      processes: controllers.has('pids') ? 'cgroup' : enforced.processes,
    },
  }
  const line = [...(user ? dropPrivileges(user) : []), ...limited, ...handOver(launch.argv)]
  if (!bubblewrap) {
    const [file, ...args] = line as [string, ...string[]]
    return {
      command: { file, args, cwd: workingFolder },
      environment,
      user: user?.uid ?? null,
      isBubblewrap: false,
      runtime,
    }
  }
  const args = [
    ...systemArguments(hidden),
    ...bubblewrapArguments(filesFolder, workingFolder, user),
    ...(network === 'loopback' ? NETWORK_OF_ITS_OWN : []),
    ...['--', ...line],
  ]
  return { command: { file: bubblewrap, args, cwd: '/' }, environment, user: null, isBubblewrap: true, runtime }
}

function bubblewrapArguments(filesFolder: string, workingFolder: string, user: GameUser | null): string[] {
  return [
    ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--hostname', 'server'],
    // Its own session, apart from bubblewrap's own process: a signal to the game's group does not end bubblewrap.
    ...['--new-session', '--json-status-fd', String(INFO_FD)],
    ...['--proc', '/proc', '--dev', '/dev', '--size', String(TMP_BYTES), '--perms', '1777', '--tmpfs', '/tmp'],
    ...['--bind', filesFolder, FILES_INSIDE, '--chdir', workingFolder],
    // What it takes to become another user, and nothing else; that gives them up too.
    ...[
      '--cap-drop',
      'ALL',
      ...(user ? ['SETUID', 'SETGID', 'SETPCAP'].flatMap((cap) => ['--cap-add', `CAP_${cap}`]) : []),
    ],
  ]
}

const dropPrivileges = ({ uid, gid }: GameUser) => [
  ...[findProgram('setpriv') ?? 'setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'],
  ...['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs', '--'],
]

function systemArguments(hidden: readonly string[] = []): string[] {
  const etc = [...OF_ETC.map((name) => `/etc/${name}`), ...OF_ETC_SSL, ...javaSettings()]
  // Made by bubblewrap itself, they would be root's alone.
  const parents = ['/etc', '/etc/ssl'].flatMap((path) => ['--perms', '0755', '--dir', path])
  const shown = [...SYSTEM.flatMap(asItIs), ...parents, ...etc.flatMap((path) => ['--ro-bind-try', path, path])]
  return [...shown, ...maskArguments([...SYSTEM.filter((path) => !isLink(path)), ...etc], hidden)]
}

/** Debian's Java keeps them there. */
const javaSettings = () =>
  readdirSync('/etc')
    .filter((name) => /^java(?:-|$)/.test(name))
    .map((name) => `/etc/${name}`)

/** On most systems /bin and its like are links into /usr. */
function asItIs(path: string): string[] {
  if (!existsSync(path) && !isLink(path)) return []
  return isLink(path) ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
}

const isLink = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false

/** For what no control group holds: limits of single processes, which are better than none. */
function limitLine({ limits, user, controllers }: Wrapping) {
  const prlimit = findProgram('prlimit')
  const options: string[] = []
  if (limits.memoryBytes !== null && !controllers.has('memory')) options.push(`--data=${limits.memoryBytes}`)
  // The kernel counts them by user, so this is of use only where a game has one of its own.
  if (user && !controllers.has('pids')) options.push(`--nproc=${limits.processes ?? DEFAULT_PROCESSES_MAX}`)
  const has = (option: string) => (prlimit && options.some((each) => each.startsWith(option)) ? 'rlimit' : 'none')
  const enforced = { memory: has('--data'), processes: has('--nproc') } as const
  return { line: prlimit && options.length > 0 ? [prlimit, ...options, '--'] : [], enforced }
}
