// A real Podman for tests: a store of its own, its API on a socket, and an image made of programs of this machine.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { needs } from './needs.ts'
import { must } from './package.ts'
import { scratchBase } from './scratch.ts'
import { until } from './until.ts'

/** The option for a suite that runs containers. */
export function needsPodman(): { skip?: string } {
  if (process.getuid?.() !== 0 && !process.env.CI) return { skip: 'Podman is run as root here' }
  if (!readFileSync('/proc/filesystems', 'utf8').includes('overlay') && !process.env.CI) return { skip: 'no overlayfs' }
  return needs('podman')
}

/** Nothing of the machine's own images, volumes and containers is touched. */
export const storeIn = (folder: string) => [
  ...['--root', join(folder, 'store'), '--runroot', join(folder, 'run'), '--runtime', 'runc'],
  ...['--cgroup-manager', 'cgroupfs'],
]

/** Programs of this machine, with the libraries that they load, as the root of an image. */
export function makeImageRoot(base: string, programs: Readonly<Record<string, string>>): void {
  const put = (from: string, to: string) => {
    mkdirSync(join(base, dirname(to)), { recursive: true })
    copyFileSync(from, join(base, to))
  }
  for (const [from, to] of Object.entries(programs)) {
    put(from, to)
    const { stdout } = spawnSync('ldd', [from], { encoding: 'utf8' })
    for (const [library] of stdout.matchAll(/\/\S+/g)) if (!library.endsWith(':')) put(library, library)
  }
  mkdirSync(join(base, 'tmp'))
  chmodSync(join(base, 'tmp'), 0o1777)
}

/** As catatonit does, which not every machine with Podman has: the game is its child, with a group of its own. */
const INIT = `#!/usr/bin/perl
shift @ARGV if $ARGV[0] eq '--';
my $child = fork();
if (!$child) { setpgrp(0, 0); exec { $ARGV[0] } @ARGV; exit 127 }
for my $name ('HUP', 'INT', 'TERM') { $SIG{$name} = sub { kill $name, $child } }
while (1) { last if wait() == $child }
exit($? & 127 ? 128 + ($? & 127) : $? >> 8);
`

/** The file of settings that names it. */
function putInit(folder: string): string {
  const [init, conf] = [join(folder, 'init'), join(folder, 'containers.conf')]
  writeFileSync(init, INIT, { mode: 0o755 })
  writeFileSync(conf, `[containers]\ninit_path = "${init}"\n[engine]\ninit_path = "${init}"\n`)
  return conf
}

const IMAGE = 'localhost/test-games:latest'
const COMMANDS = ['sh', 'env', 'sort', 'sed', 'id', 'tr', 'head', 'ls', 'grep', 'wc', 'touch', 'sleep', 'cat', 'mkdir']

export interface Podman extends AsyncDisposable {
  socket: string
  /** Has what the test games need. */
  image: string
  podman(...args: string[]): Promise<{ stdout: string }>
  /** Its API goes away; containers do not. */
  stopService(): Promise<void>
  startService(): Promise<void>
}

export async function startPodman(): Promise<Podman> {
  const folder = mkdtempSync(join(scratchBase(), 'gamekeeper-podman-'))
  const socket = join(folder, 'podman.sock')
  const conf = putInit(folder)
  const podman = (...args: string[]) => must('podman', [...storeIn(folder), ...args], folder)
  let service: ReturnType<typeof spawn> | undefined

  const startService = async () => {
    const args = [...storeIn(folder), 'system', 'service', '--time', '0', `unix://${socket}`]
    // conmon leaves files in the folder that it is started in.
    service = spawn('podman', args, { stdio: 'ignore', cwd: folder, env: { ...process.env, CONTAINERS_CONF: conf } })
    await until(async () => existsSync(socket))
  }
  const stopService = async () => {
    if (!service) return
    const ended = once(service, 'exit')
    service.kill('SIGKILL')
    await ended
    service = undefined
    rmSync(socket, { force: true })
  }

  makeRoot(join(folder, 'base'))
  await must('tar', ['cf', '../base.tar', '.'], join(folder, 'base'))
  await podman('import', join(folder, 'base.tar'), IMAGE)
  await startService()
  return {
    socket,
    image: IMAGE,
    podman,
    startService,
    stopService,
    async [Symbol.asyncDispose]() {
      await stopService()
      await podman('rm', '--all', '--force', '--time', '0')
      await podman('rmi', '--all', '--force')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function makeRoot(base: string): void {
  const found = COMMANDS.map((name) => [`/usr/bin/${name}`, `/usr/bin/${name}`] as const)
  makeImageRoot(base, { ...Object.fromEntries(found), '/usr/bin/sh': '/bin/sh', '/usr/bin/perl': '/usr/bin/perl' })
  const { stdout } = spawnSync('perl', ['-e', 'print join "\\n", grep { /perl-base/ } @INC'], { encoding: 'utf8' })
  const locale = '/usr/lib/locale/C.utf8'
  for (const path of [locale, ...stdout.split('\n').filter(Boolean)])
    cpSync(path, join(base, path), { recursive: true })
}
