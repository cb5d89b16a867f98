// The image of the Containerfile, built by Podman on a root file system that is made here, and run without any rights.
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ROOT } from '../architecture/sources.ts'
import { must, run } from '../support/package.ts'
import { makeImageRoot, needsPodman, storeIn } from '../support/podman.ts'
import { scratchBase } from '../support/scratch.ts'
import { until } from '../support/until.ts'

const folder = mkdtempSync(join(scratchBase(), 'gamekeeper-container-'))
const TOKEN = `gk_container_${'5a'.repeat(32)}`
const store = storeIn(folder)
const podman = (...args: string[]) => must('podman', [...store, ...args], folder)
const HARDENED = ['--network', 'none', '--read-only', '--read-only-tmpfs=false', '--cap-drop', 'all']
const BOUNDED = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1000:1000', '--security-opt', 'no-new-privileges']

export function describeContainer(tarball: () => string): void {
  describe('the container', needsPodman(), () => {
    before(() => build(tarball()))
    after(async () => {
      await podman('rm', '--all', '--force', '--volumes')
      await podman('rmi', '--all', '--force')
      rmSync(folder, { recursive: true, force: true })
    })

    test('runs without root, rights or a file system to write to, and says that it is healthy', async () => {
      await start()
      const { stdout } = await podman('exec', 'castle', 'node', '-e', LOOK)
      assert.deepEqual(JSON.parse(stdout), { uid: 10001, root: 'EROFS', data: 0o700, effectiveRights: 0, panel: true })
    })

    test('a health check fails where nothing answers', async () => {
      const failed = await run(
        'podman',
        [...store, 'exec', '-e', 'GAMEKEEPER_PORT=8081', 'castle', 'node', CHECK],
        folder,
      )
      assert.equal(failed.code, 1)
    })

    test('another container on the same volume has everything', async () => {
      await podman('exec', '-e', `GAMEKEEPER_TOKEN=${TOKEN}`, 'castle', 'gamekeeper', 'server', 'create', 'Castle')
      await podman('rm', '--force', '--time', '0', 'castle')
      await start()
      const list = ['exec', '-e', `GAMEKEEPER_TOKEN=${TOKEN}`, 'castle', 'gamekeeper', 'server', 'ls', '--json']
      assert.deepEqual(
        JSON.parse((await podman(...list)).stdout).map(({ name }: { name: string }) => name),
        ['Castle'],
      )
    })

    test('stops when told, within its time', async () => {
      await podman('stop', 'castle')
      assert.equal((await podman('inspect', '--format', '{{.State.ExitCode}}', 'castle')).stdout, '0\n')
    })
  })
}
const CHECK = '/usr/local/lib/node_modules/gamekeeper/bin/healthcheck.js'

const LOOK = `
const root = (() => { try { fs.writeFileSync('/x', '') } catch (error) { return error.code } })()
const [, rights] = /CapEff:\\t(\\w+)/.exec(fs.readFileSync('/proc/1/status', 'utf8'))
const data = fs.statSync('/data').mode & 0o777
const panel = fs.existsSync('/usr/local/lib/node_modules/gamekeeper/panel/dist/index.html')
console.log(JSON.stringify({ uid: process.getuid(), root, data, effectiveRights: Number(rights), panel }))
`

async function start(): Promise<void> {
  const settings = ['-e', `GAMEKEEPER_ADMIN_TOKEN=${TOKEN}`, '-v', 'castle:/data']
  await podman('run', '--detach', '--name', 'castle', ...HARDENED, ...BOUNDED, ...settings, 'gamekeeper')
  await until(async () => (await run('podman', [...store, 'healthcheck', 'run', 'castle'], folder)).code === 0)
}

/** As docs/installing.md does, but for the base, which comes from a registry there. */
async function build(tarball: string): Promise<void> {
  const context = join(folder, 'context')
  mkdirSync(context)
  for (const name of ['Containerfile', '.containerignore']) cpSync(join(ROOT, name), join(context, name))
  const quietly = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
  await must('npm', ['install', '--global', '--prefix', 'image', ...quietly, tarball], context)
  // Node and the libraries that it loads, and `env`, by which the command finds it.
  makeImageRoot(join(folder, 'base'), { [process.execPath]: '/usr/local/bin/node', '/usr/bin/env': '/usr/bin/env' })
  await must('tar', ['cf', '../base.tar', '.'], join(folder, 'base'))
  await podman('import', join(folder, 'base.tar'), 'base')
  const options = [
    '--format',
    'docker',
    '--isolation',
    'chroot',
    '--layers=false',
    '--build-arg',
    'BASE=localhost/base',
  ]
  await podman('build', ...options, '--tag', 'gamekeeper', context)
}
