// What the tests need beyond npm, and how to get it on Debian. Nothing here is needed to run the service.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

interface Tool {
  /** Present when every one of these exists. A path, or a glob with one `*` segment for a version. */
  files: string[]
  packages: string[]
}

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
  archives: { files: ['/usr/bin/zip', '/usr/bin/unzip'], packages: ['zip', 'unzip'] },
} as const satisfies Record<string, Tool>

export type ToolName = keyof typeof TOOLS

export function missingTools(): ToolName[] {
  return (Object.keys(TOOLS) as ToolName[]).filter((name) => !TOOLS[name].files.every((file) => existsSync(file)))
}

/** Installs what is missing from Debian's packages and says what it did. Returns what is still missing, with the reason. */
export function installTools(say: (line: string) => void): { name: ToolName; reason: string }[] {
  const missing = missingTools()
  if (missing.length === 0) return []
  const refusal = whyNotInstall()
  if (refusal) return missing.map((name) => ({ name, reason: refusal }))
  const packages = missing.flatMap((name) => [...TOOLS[name].packages])
  say(`test tools: installing ${packages.join(', ')} from Debian's packages`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const run = (...args: string[]) => spawnSync('apt-get', args, { env, encoding: 'utf8' })
  const update = run('update')
  const install = update.status === 0 ? run('install', '-y', '--no-install-recommends', ...packages) : update
  const left = missingTools()
  say(left.length === 0 ? 'test tools: installed' : `test tools: apt-get failed:\n${install.stdout}${install.stderr}`)
  return left.map((name) => ({ name, reason: 'apt-get could not install it' }))
}

function whyNotInstall(): string | undefined {
  if (!existsSync('/usr/bin/apt-get')) return 'not installed, and this system has no apt-get'
  if (process.getuid?.() !== 0) return 'not installed, and installing it needs root'
  return undefined
}
