import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { needs } from '../../../test/support/needs.ts'
import { runPiped } from '../../../test/support/terminal.ts'
import { TOKEN_FORM } from '../../contract/tokens.ts'

const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-service-'))
after(() => rmSync(folder, { recursive: true }))
const install = (...args: string[]) => runPiped(['service', 'install', ...args], {})

/** A system as an image has it before anything was added. */
function newRoot(): string {
  const root = mkdtempSync(join(folder, 'root-'))
  mkdirSync(join(root, 'etc'))
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n')
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\n')
  writeFileSync(join(root, 'etc/shadow'), 'root:*:19000:0:99999:7:::\n')
  return root
}

const modeOf = (path: string) => statSync(path).mode & 0o777
const asRoot = process.getuid?.() === 0 || process.env.CI ? {} : { skip: 'needs root' }

describe('service install', () => {
  test('--dry-run shows the unit and does nothing', async () => {
    const root = newRoot()
    const { code, stdout } = await install('--dry-run', '--root', root, '--data-dir', '/srv/games')
    assert.equal(code, 0)
    assert.match(stdout, /^ReadWritePaths=\/srv\/games$/m)
    assert.match(stdout, /Nothing was done\.\n$/)
    assert.throws(() => statSync(join(root, 'srv')), { code: 'ENOENT' })
    assert.throws(() => statSync(join(root, 'etc/systemd')), { code: 'ENOENT' })
  })

  test('makes a user, a data directory, settings and a unit, each once', asRoot, async () => {
    const root = newRoot()
    const { code, stdout, stderr } = await install('--root', root)
    assert.equal(code, 0, stderr)
    assert.equal(stdout.match(/^created /gm)?.length, 4)
    assert.match(stdout, /systemctl --root .* enable gamekeeper/)
    assert.match(stderr, /^The unit runs \/.*node.*: install that there, at the same path\.$/m)
    const [, uid] = /^gamekeeper:x?!?:(\d+):\d+:[^:]*:\/var\/lib\/gamekeeper:\/usr\/sbin\/nologin$/m.exec(
      readFileSync(join(root, 'etc/passwd'), 'utf8'),
    ) as unknown as [string, string]
    const data = join(root, 'var/lib/gamekeeper')
    assert.deepEqual([statSync(data).uid, modeOf(data)], [Number(uid), 0o700])
    const settings = join(root, 'etc/gamekeeper/gamekeeper.env')
    assert.deepEqual([statSync(settings).uid, modeOf(settings)], [0, 0o600])
    const [, token = ''] = /^GAMEKEEPER_ADMIN_TOKEN=(.*)$/m.exec(readFileSync(settings, 'utf8')) ?? []
    assert.match(token, TOKEN_FORM)
    assert.ok(!stdout.includes(token))

    const again = await install('--root', root)
    assert.equal(again.stdout.match(/^found /gm)?.length, 4)
    assert.ok(readFileSync(settings, 'utf8').includes(token))
  })

  test('is refused in a sentence where it cannot be', async () => {
    const relative = await install('--data-dir', 'here')
    assert.deepEqual([relative.code, relative.stdout], [2, ''])
    assert.match(relative.stderr, /^error: --data-dir must be an absolute path/)
    if (process.getuid?.() === 0) {
      const empty = await install('--root', mkdtempSync(join(folder, 'empty-')))
      assert.deepEqual([empty.code, empty.stdout], [1, ''])
      assert.match(empty.stderr, /^error: .* is not the root of a system: it has no etc\/passwd\.\n$/)
    }
    // The functions that ask who runs it are the process's own.
    const asked = process.getuid
    process.getuid = () => 1000
    try {
      const { code, stderr } = await install('--root', newRoot())
      assert.equal(code, 1)
      assert.match(stderr, /^error: Installing a service needs root\..*\n$/)
    } finally {
      if (asked) process.getuid = asked
    }
  })

  test('the unit lets bubblewrap make every namespace of a game, and of a rehearsal', async () => {
    const { stdout } = await install('--dry-run', '--json')
    const { unit } = JSON.parse(stdout)
    assert.match(unit, /^Delegate=yes\nDelegateSubgroup=gamekeeper$/m, 'as src/agent/games/process/cgroups.ts expects')
    const allowed = /^RestrictNamespaces=(.*)$/m.exec(unit)?.[1]?.split(' ')
    for (const name of ['user', 'mnt', 'pid', 'ipc', 'uts', 'cgroup', 'net']) assert.ok(allowed?.includes(name), name)
  })

  test(
    'the unit is one that systemd takes, and keeps the service from almost everything',
    needs('systemd'),
    async () => {
      const { stdout } = await install('--dry-run', '--json')
      const path = join(folder, 'gamekeeper.service')
      writeFileSync(path, JSON.parse(stdout).unit)
      const analyze = (...args: string[]) => spawnSync('systemd-analyze', [...args, path], { encoding: 'utf8' })
      const verified = analyze('verify')
      // Before its version 254 systemd ignores that one, and says so.
      const complaints = verified.stderr
        .split('\n')
        .filter((line) => line.includes(path) && !line.includes("Unknown key 'DelegateSubgroup'"))
      assert.deepEqual([verified.status, complaints], [0, []], verified.stderr)
      const { status, stdout: exposure } = analyze('security', '--offline=true', '--threshold=40')
      assert.equal(status, 0, exposure)
    },
  )
})
