import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { useCli } from '../../test/support/cli.ts'
import { signIn } from '../../test/support/sessions.ts'
import { runAtTerminal, runBinary, runPiped, startBinary } from '../../test/support/terminal.ts'
import { startScripted } from '../../test/support/unreliable.ts'
import { DEFAULT_ENTRIES_MAX } from '../contract/fixed-limits.ts'
import { type AnyCommand, parse } from './command.ts'
import { COMMANDS } from './command-list.ts'

const cli = useCli()
const { envOf, run, json } = cli

describe('help and usage', () => {
  test('every command explains itself, with examples that it accepts itself', async () => {
    for (const [name, { load }] of Object.entries(COMMANDS)) {
      const { main, subcommands = {} } = await load()
      const all: [string[], AnyCommand][] = Object.entries(subcommands).map(([word, spec]) => [[name, word], spec])
      if (main) all.push([[name], main])
      for (const [path, spec] of all) {
        const { code, stdout } = await runAtTerminal([...path, '--help'], {})
        assert.equal(code, 0)
        assert.match(stdout, new RegExp(`Usage: gamekeeper ${path.join(' ')}`))
        assert.ok(spec.examples.length > 0, path.join(' '))
        for (const example of spec.examples) {
          assert.ok(stdout.includes(example))
          parse(path.join(' '), spec, wordsOf(example).slice(path.length))
        }
      }
    }
  })

  test('the overview names every command; a family lists its own', async () => {
    const { code, stdout } = await run('--help')
    assert.equal(code, 0)
    for (const name of Object.keys(COMMANDS)) assert.match(stdout, new RegExp(`^  ${name} `, 'm'))
    assert.match((await run('server', '--help')).stdout, /server create/)
    assert.match((await run('--version')).stdout, /^\d+\.\d+\.\d+\n$/)
  })

  for (const [args, message] of [
    [['sever', 'ls'], 'Did you mean "gamekeeper server"?'],
    [['server', 'lst'], 'Did you mean "gamekeeper server ls"?'],
    [['server'], 'needs one of create, ls, show, set, install, rm, undelete'],
    [['server', 'create', 'x', '--prot', '1'], 'Did you mean --port?'],
    [['server', 'ls', '--limit'], '--limit needs a value'],
    [['server', 'ls', '--json=yes'], '--json takes no value'],
    [['server', 'show'], 'SERVER is missing.\nUsage: gamekeeper server show SERVER [options]\n'],
    [['server', 'show', 'a', 'b'], '"b" is an extra argument'],
    [['server', 'create', 'x', '--disk', 'huge'], '--disk must be a size'],
    [['server', 'create', 'x', '--game', 'minecraft'], 'Did you mean minecraft-java?'],
    [['token', 'create', 'x', '--scope', 'server:read'], 'Did you mean servers:read?'],
    [['activity', '--follow'], '--follow needs a server'],
    [['activity', '--since', 'yesterday'], '--since must be a time'],
    [['server', 'ls', '--url', 'nowhere'], 'is not a URL'],
    [['constructor'], 'There is no command'],
  ] as const) {
    test(`wrong usage is exit code 2: ${args.join(' ')}`, async () => {
      const { code, stdout, stderr } = await runAtTerminal(args, { ...envOf(), NO_COLOR: '1' })
      assert.equal(code, 2, stderr)
      assert.equal(stdout, '')
      assert.ok(stderr.includes(message), stderr)
    })
  }

  test('A token is never taken as the value of an option', async () => {
    for (const args of [['--token=gk_a_secret'], ['--token', 'gk_a_secret']]) {
      const { code, stderr } = await run('server', 'ls', ...args)
      assert.equal(code, 2)
      assert.match(stderr, /--token-file/)
      assert.doesNotMatch(stderr, /secret/)
    }
  })
})

describe('exit codes', () => {
  test('3 without a token, with a bad one and without the scope', async () => {
    assert.equal((await runPiped(['server', 'ls'], { GAMEKEEPER_URL: cli.service.url })).code, 3)
    const unknown = await runBinary(['server', 'ls'], { env: envOf(`gk_x_${'0'.repeat(64)}`) })
    assert.equal(unknown.code, 3)
    assert.match(unknown.stderr, /Check GAMEKEEPER_TOKEN or --token-file\./)
    const { token } = await cli.service.mint(['activity:read'])
    assert.equal((await runPiped(['server', 'ls'], envOf(token))).code, 3)
    assert.equal((await run('server', 'ls', '--token-file', join(cli.folder, 'absent'))).code, 3)
  })

  test('4 for what is not there, 5 for a conflict, 2 for what the service finds invalid', async () => {
    const nowhere = await run('server', 'show', 'Nowhere')
    assert.equal(nowhere.code, 4)
    assert.match(nowhere.stderr, /No server is named "Nowhere"\. "gamekeeper server ls" lists them\./)
    assert.equal((await run('server', 'show', 'srv_0')).code, 4)
    await run('server', 'create', 'Twin')
    await run('server', 'create', 'Twin')
    assert.match((await run('server', 'show', 'twin')).stderr, /No server is named "twin"\. Did you mean "Twin"\?/)
    const twins = await run('server', 'show', 'Twin')
    assert.equal(twins.code, 5)
    assert.match(twins.stderr, /srv_\w+, srv_\w+/)
    const invalid = await run('server', 'create', 'x', '--port', '99999')
    assert.equal(invalid.code, 2)
    assert.match(invalid.stderr, /^error: [^\n]*\/port must be <= 65535\.\nrequest req_\w+\n$/)
  })

  test('6 when nothing answers, 7 when there were too many requests', async () => {
    const nobody = { GAMEKEEPER_URL: 'http://127.0.0.1:9', GAMEKEEPER_TOKEN: 'gk_x' }
    const { code, stderr } = await runBinary(['server', 'ls', '--json'], { env: nobody })
    assert.equal(code, 6)
    assert.equal(JSON.parse(stderr).error.code, 'unreachable_network')
    const body = { type: '', title: '', status: 429, detail: 'Slowly.', code: 'rate_limited', requestId: 'req_1' }
    await using limited = await startScripted([{ status: 429, body, headers: { 'retry-after': '3600' } }])
    const slow = await runPiped(['server', 'ls'], { GAMEKEEPER_URL: limited.url, GAMEKEEPER_TOKEN: 'gk_x' })
    assert.equal(slow.code, 7)
  })
})

describe('server', () => {
  test('create, show, set and ls, as JSON', async () => {
    const created = await json(
      'server',
      'create',
      'Castle',
      '--game',
      'minecraft-java',
      '--port',
      '25565',
      '--disk',
      '20GiB',
      '--label',
      'owner=anna',
    )
    assert.equal(created.limits.diskBytes, 20 * 1024 ** 3)
    assert.deepEqual(created.labels, { owner: 'anna' })
    assert.deepEqual(await json('server', 'show', 'Castle'), created)
    const changed = await json(
      'server',
      'set',
      'Castle',
      '--disk',
      'none',
      '--game',
      'none',
      '--label',
      '',
      '--backups',
      '3',
    )
    const ofGames = { memoryBytes: null, cpuPercent: null, processes: null }
    const ofFiles = { diskBytes: null, entries: DEFAULT_ENTRIES_MAX }
    assert.deepEqual(changed.limits, { ...ofFiles, backups: 3, subdomains: null, ...ofGames })
    assert.deepEqual([changed.game, changed.labels, changed.port], [null, {}, 25565])
    assert.deepEqual(await json('server', 'ls', '--search', 'Castle'), [changed])
    const [entry] = await json('activity', created.id, '--limit', '1')
    assert.equal(entry.source, 'cli')
    assert.match(entry.userAgent, /^gamekeeper-cli\//)
  })

  test('tables are aligned, coloured on a terminal only, and NO_COLOR is respected', async () => {
    await json('server', 'create', '城 🏰')
    const { stdout } = await run('server', 'ls')
    const [head = '', ...rows] = stdout.trimEnd().split('\n')
    assert.match(head, /^NAME +ID +GAME +PORT +DISK +STATUS +POWER +CREATED$/)
    const wide = rows.find((row) => row.startsWith('城'))
    // One character of the name fills two columns and one unit of the string.
    assert.equal((wide?.indexOf('srv_') ?? 0) + 1, head.indexOf('ID'))
    assert.ok(!stdout.includes('\u001b['))
    assert.ok((await runAtTerminal(['server', 'ls'], envOf())).stdout.includes('\u001b['))
    assert.ok(!(await runAtTerminal(['server', 'ls'], { ...envOf(), NO_COLOR: '1' })).stdout.includes('\u001b['))
    assert.ok(!(await runAtTerminal(['server', 'ls', '--no-color'], envOf())).stdout.includes('\u001b['))
  })

  test('rm asks for the name at a terminal, and needs --confirm elsewhere', async () => {
    const { id } = await json('server', 'create', 'Doomed')
    const silent = await run('server', 'rm', 'Doomed')
    assert.equal(silent.code, 2)
    assert.match(silent.stderr, /--confirm "Doomed"/)
    const wrong = await runAtTerminal(['server', 'rm', 'Doomed'], envOf(), ['doomed'])
    assert.equal(wrong.code, 1)
    assert.match(wrong.stderr, /nothing was deleted/)
    assert.equal((await run('server', 'rm', id, '--confirm', 'Domed')).code, 1)
    assert.equal((await json('server', 'show', id)).status, 'ready')
    const right = await runAtTerminal(['server', 'rm', 'Doomed'], envOf(), ['Doomed'])
    assert.deepEqual([right.code, right.stdout], [0, 'Deleted Doomed.\n'])
    assert.match(right.stderr, /This deletes Doomed with 0 B of files, 0 backups \(0 B\)\./)
    assert.match(right.stderr, /It can be brought back until /)
    assert.equal((await json('server', 'show', id)).status, 'deleted')
    assert.deepEqual(
      (await json('server', 'ls', '--deleted')).map((server: { id: string }) => server.id),
      [id],
    )
    assert.deepEqual((await run('server', 'undelete', 'Doomed')).stdout, 'Doomed is back.\n')
    assert.equal((await json('server', 'rm', 'Doomed', '--confirm', 'Doomed')).deleted, true)
    assert.equal((await json('server', 'rm', id, '--purge', '--confirm', 'Doomed')).purged, true)
    assert.equal((await run('server', 'show', id)).code, 4)
  })
})

test('what others have named cannot steer the terminal', async () => {
  const { id } = await cli.service.createServer({ name: 'Plain \u202etxet' })
  await cli.service.call('PATCH', `/servers/${id}`, { body: { description: 'two\nlines' } })
  const shown = await runAtTerminal(['server', 'show', id, '--no-color'], envOf())
  assert.match(shown.stdout, /Plain \\u202etxet/)
  assert.match(shown.stdout, /two\\u000alines/)
})

describe('token', () => {
  test('create prints the value alone on standard output, and it works', async () => {
    const { id } = await cli.service.createServer({ name: 'Tokened' })
    const made = await run(
      'token',
      'create',
      'ci',
      '--scope',
      'servers:read,activity:read',
      '--server',
      'Tokened',
      '--expires',
      '1d',
    )
    assert.equal(made.code, 0, made.stderr)
    assert.match(made.stdout, /^gk_[0-9a-z]+_[0-9a-f]{64}\n$/)
    const file = join(cli.folder, 'ci.token')
    writeFileSync(file, made.stdout, { mode: 0o600 })
    const listed = await runBinary(['--token-file', file, 'server', 'ls', '--json'], {
      env: { GAMEKEEPER_URL: cli.service.url },
    })
    assert.deepEqual(
      JSON.parse(listed.stdout).map((server: { id: string }) => server.id),
      [id],
    )
  })

  test('create --output writes a file that only its owner reads, and never over another', async () => {
    const file = join(cli.folder, 'ops.token')
    const made = await run('token', 'create', 'ops', '--scope', '*', '--output', file)
    assert.equal(made.code, 0, made.stderr)
    assert.doesNotMatch(made.stdout, /gk_/)
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const before = await json('token', 'ls', '--token-file', file)
    assert.equal((await run('token', 'create', 'ops2', '--scope', '*', '--output', file)).code, 1)
    assert.equal((await json('token', 'ls')).length, before.length)
    const refused = join(cli.folder, 'refused.token')
    assert.equal((await run('token', 'create', '', '--scope', '*', '--output', refused)).code, 2)
    assert.equal(existsSync(refused), false)
    assert.match(readFileSync(file, 'utf8'), /^gk_/)
  })

  test('rm revokes at once', async () => {
    const made = await json('token', 'create', 'brief', '--scope', 'servers:read')
    assert.equal((await run('token', 'rm', made.id)).code, 0)
    assert.equal((await runPiped(['server', 'ls'], envOf(made.token))).code, 3)
    assert.equal((await run('token', 'rm', made.id)).code, 4)
  })
})

test('session lists where a token is signed in, and ends it', async () => {
  const { service } = cli
  const browser = await signIn(service, { token: service.adminToken })
  const { id } = (await browser.call('GET', '/session')).body.session
  const listed = await json('session', 'ls')
  assert.deepEqual(
    listed.map((session: { id: string }) => session.id),
    [id],
  )
  assert.equal((await run('session', 'end', id)).stdout, `Ended ${id}.\n`)
  assert.equal((await browser.call('GET', '/session')).status, 401)
  assert.equal((await run('session', 'end')).code, 2)
  assert.deepEqual(await json('session', 'end', '--all', '--of', 'tok_admin'), { ended: 0 })
})

describe('activity', () => {
  test('lists, exports and verifies', async () => {
    const { id } = await cli.service.createServer({ name: 'Watched' })
    await cli.service.call('PATCH', `/servers/${id}`, { body: { port: 1 } })
    const { stdout } = await run('activity', 'Watched', '--event', 'server.*', '--since', '1h')
    assert.match(stdout, /^TIME +EVENT +ACTOR/)
    assert.match(stdout, /server\.changed +admin +api +127\.0\.0\.1 +\{"changes"/)
    const ndjson = await run('activity', 'Watched', '--format', 'ndjson')
    assert.deepEqual(
      ndjson.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).event),
      ['server.changed', 'server.created'],
    )
    assert.match((await run('activity', '--format', 'csv')).stdout, /^id,timestamp,/)
    assert.match((await run('activity', 'verify', 'Watched')).stdout, /^Intact: 2 entries in 1 chains/)
    assert.equal((await json('activity', 'verify')).intact, true)
  })

  test('--follow --json is one document a line, until interrupted', async () => {
    const { id } = await cli.service.createServer({ name: 'Live' })
    const child = startBinary(['activity', 'Live', '--follow', '--json', '--after', 'act_0'], { env: envOf() })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    assert.equal(JSON.parse((await lines.next()).value ?? '').event, 'server.created')
    await cli.service.call('PATCH', `/servers/${id}`, { body: { port: 7 } })
    assert.equal(JSON.parse((await lines.next()).value ?? '').properties.changes.port.to, 7)
    child.kill('SIGINT')
    const [code] = await once(child, 'exit')
    assert.equal(code, 130)
  })
})

describe('jobs', () => {
  test('wait shows progress at a terminal and exits by how the job ended', async () => {
    const event = (status: string, bytesDone: number) => {
      const job = {
        id: 'job_1',
        kind: 'restore',
        status,
        progress: { filesDone: 1, filesTotal: null, bytesDone, bytesTotal: 2048 },
        error: status === 'failed' ? { code: 'disk_full', detail: 'The disk is full.' } : null,
        result: null,
        createdAt: '2026-11-15T00:00:00.000Z',
        startedAt: null,
        finishedAt: null,
      }
      return `event: job\ndata: ${JSON.stringify(job)}\n\n`
    }
    for (const [end, code] of [
      ['completed', 0],
      ['failed', 1],
      ['cancelled', 1],
    ] as const) {
      const headers = { 'content-type': 'text/event-stream' }
      await using server = await startScripted([
        { status: 200, headers, body: event('running', 1024) + event(end, 2048) },
      ])
      const env = { GAMEKEEPER_URL: server.url, GAMEKEEPER_TOKEN: 'gk_x' }
      const ran = await runAtTerminal(['jobs', 'wait', 'srv_1', 'job_1', '--no-color'], env)
      assert.equal(ran.code, code)
      assert.match(ran.stderr, /restore {2}\[#{12}-{12}\] {2}50% {2}1\.0 KiB of 2\.0 KiB/)
      assert.match(ran.stdout, new RegExp(`Status +${end}`))
    }
  })

  test('ls, show and cancel speak to the service', async () => {
    const { id } = await cli.service.createServer({ name: 'Idle' })
    assert.deepEqual(await json('jobs', 'ls', 'Idle'), [])
    assert.equal((await run('jobs', 'show', id, 'job_0')).code, 4)
    assert.equal((await run('jobs', 'cancel', id, 'job_0')).code, 4)
    assert.equal((await run('jobs', 'ls', id, '--status', 'odd')).code, 2)
  })
})

/** The words of an example after the name of the command, without what is the shell's own. */
function wordsOf(example: string): string[] {
  const line = example.replace(/^(\w+=\S+ )*gamekeeper /, '').replace(/ > .*$/, '')
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
}
