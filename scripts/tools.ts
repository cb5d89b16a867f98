// What the tests need beyond `npm ci`, and how to get it. Nothing here is needed to run the service.
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Tool {
  /** Present when every one of these exists. */
  files: readonly string[]
  /** Debian's. */
  packages?: readonly string[]
  /** A folder with a package.json and a lockfile of its own, for what is too large for everybody's `npm ci`. */
  npm?: string
  /** A program that Go builds from its sources, `module@version`, into the folder of its file. */
  go?: string
}

/** Of the user, so that a fresh clone finds what another has built. */
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'gamekeeper')
const VERSITYGW = 'v1.8.0'
const MINECRAFT = fileURLToPath(new URL('../test/support/minecraft', import.meta.url))

export const TOOLS = {
  postgresql: { files: ['/usr/lib/postgresql/15/bin/initdb'], packages: ['postgresql'] },
  chromium: { files: ['/usr/bin/chromium'], packages: ['chromium'] },
  powerdns: {
    files: ['/usr/sbin/pdns_server', '/usr/lib/x86_64-linux-gnu/pdns/libgsqlite3backend.so'],
    packages: ['pdns-server', 'pdns-backend-sqlite3'],
  },
  sqlite: { files: ['/usr/bin/sqlite3'], packages: ['sqlite3'] },
  bind: { files: ['/usr/sbin/named', '/usr/bin/dig'], packages: ['bind9', 'bind9-dnsutils'] },
  python: { files: ['/usr/bin/python3', '/usr/bin/zstd'], packages: ['python3', 'zstd'] },
  podman: { files: ['/usr/bin/podman', '/usr/sbin/runc'], packages: ['podman', 'runc'] },
  systemd: { files: ['/usr/bin/systemd-analyze'], packages: ['systemd'] },
  nginx: { files: ['/usr/sbin/nginx', '/usr/bin/openssl'], packages: ['nginx-light', 'openssl'] },
  caddy: { files: ['/usr/bin/caddy'], packages: ['caddy'] },
  zsh: { files: ['/usr/bin/zsh'], packages: ['zsh'] },
  fish: { files: ['/usr/bin/fish'], packages: ['fish'] },
  openttd: {
    files: ['/usr/games/openttd', '/usr/share/games/openttd/baseset/opengfx'],
    packages: ['openttd', 'openttd-opengfx'],
  },
  luanti: { files: ['/usr/games/minetestserver'], packages: ['minetest-server'] },
  bubblewrap: { files: ['/usr/bin/bwrap', '/usr/bin/perl'], packages: ['bubblewrap', 'perl-base'] },
  nodejs: { files: ['/usr/bin/node'], packages: ['nodejs'] },
  minecraft: {
    files: ['flying-squid', 'mineflayer'].map((name) => join(MINECRAFT, 'node_modules', name, 'package.json')),
    npm: MINECRAFT,
  },
  versitygw: {
    files: [join(CACHE, `versitygw-${VERSITYGW}`, 'versitygw')],
    go: `github.com/versity/versitygw/cmd/versitygw@${VERSITYGW}`,
  },
  cc: { files: ['/usr/bin/cc', '/usr/include/pthread.h'], packages: ['gcc', 'libc6-dev'] },
  archives: { files: ['/usr/bin/zip', '/usr/bin/unzip'], packages: ['zip', 'unzip'] },
} as const satisfies Record<string, Tool>

export type ToolName = keyof typeof TOOLS

export function missingTools(): ToolName[] {
  return (Object.keys(TOOLS) as ToolName[]).filter((name) => !TOOLS[name].files.every((file) => existsSync(file)))
}

/** Installs what is missing and says what it did. Returns what is still missing, with the reason. */
export function installTools(say: (line: string) => void): { name: ToolName; reason: string }[] {
  const tools: [ToolName, Tool][] = missingTools().map((name) => [name, TOOLS[name]])
  const folders = tools.flatMap(([, { npm }]) => npm ?? [])
  const packages = tools.flatMap(([, tool]) => tool.packages ?? [])
  for (const folder of folders) installFromNpm(folder, say)
  for (const [name, { go, files }] of tools) if (go !== undefined) buildWithGo(name, go, files, say)
  const refusal = packages.length > 0 ? whyNotInstall() : undefined
  if (packages.length > 0 && refusal === undefined) installFromDebian(packages, say)
  return missingTools().map((name) => {
    const tool: Tool = TOOLS[name]
    if (tool.packages) return { name, reason: refusal ?? 'apt-get could not install it' }
    return { name, reason: tool.npm ? 'npm could not install it' : 'needs Go 1.24 or later to be built' }
  })
}

function installFromDebian(packages: readonly string[], say: (line: string) => void): void {
  say(`test tools: installing ${packages.join(', ')} from Debian's packages`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const run = (...args: string[]) => spawnSync('apt-get', args, { env, encoding: 'utf8' })
  const update = run('update')
  sayResult(update.status === 0 ? run('install', '-y', '--no-install-recommends', ...packages) : update, say)
}

function installFromNpm(folder: string, say: (line: string) => void): void {
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  say(`test tools: installing ${Object.keys(dependencies).join(', ')} from npm, for the tests alone`)
  sayResult(spawnSync('npm', ['ci', '--ignore-scripts'], { cwd: folder, encoding: 'utf8' }), say)
}

/** From Go's own cache it takes seconds, and minutes the first time. */
function buildWithGo(name: string, module: string, files: readonly string[], say: (line: string) => void): void {
  say(`test tools: building ${name} from ${module}; the first time this takes minutes`)
  // As little as possible: it is built for a test that runs for seconds. Where Go's own installer puts it is often in no PATH.
  const cheap = ['-gcflags=all=-N -l', '-ldflags=-s -w']
  const PATH = `${process.env.PATH}:/usr/local/go/bin`
  const env = { ...process.env, PATH, HOME: homedir(), CGO_ENABLED: '0', GOBIN: dirname(files[0] ?? '') }
  sayResult(spawnSync('go', ['install', ...cheap, module], { env, encoding: 'utf8' }), say)
}

function sayResult({ status, stdout, stderr }: SpawnSyncReturns<string>, say: (line: string) => void): void {
  say(status === 0 ? 'test tools: installed' : `test tools: that failed:\n${stdout}${stderr}`)
}

function whyNotInstall(): string | undefined {
  if (!existsSync('/usr/bin/apt-get')) return 'not installed, and this system has no apt-get'
  if (process.getuid?.() !== 0) return 'not installed, and installing it needs root'
  return undefined
}
