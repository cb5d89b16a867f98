// Files shown, edited and put back from the command line, against the real service. The editors are one line of shell.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { useCli } from '../../../../test/support/cli.ts'
import { runAtTerminal, runPiped } from '../../../../test/support/terminal.ts'

const cli = useCli()
const { envOf, run, json } = cli
let serverId: string
const remote = (path: string) => join(cli.service.dataDir, 'servers', serverId, 'files', path)
const read = (path: string) => readFileSync(remote(path), 'utf8')

describe('the files of a server', () => {
  before(async () => {
    serverId = (await cli.service.createServer({ name: 'Castle' })).id
  })

  describe('files cat', () => {
    test('prints the bytes of each, as they are', async () => {
      writeFileSync(remote('a.txt'), 'a\r\n\u001b[31m')
      writeFileSync(remote('b.txt'), 'b\n')
      assert.equal((await run('files', 'cat', 'Castle', '/a.txt', '/b.txt')).stdout, 'a\r\n\u001b[31mb\n')
      assert.equal((await run('files', 'cat', 'Castle', '/nowhere.txt')).code, 4)
      mkdirSync(remote('folder'))
      assert.equal((await run('files', 'cat', 'Castle', '/folder')).code, 2)
    })

    test('on a terminal, control characters are shown and not obeyed', async () => {
      const { stdout } = await runAtTerminal(['files', 'cat', 'Castle', '/a.txt'], envOf())
      assert.equal(stdout, 'a\n\\u001b[31m')
    })
  })

  describe('files edit', () => {
    const edit = (path: string, editor: string, url = cli.service.url) =>
      runPiped(['files', 'edit', 'Castle', path], { ...envOf(), GAMEKEEPER_URL: url, EDITOR: editor })
    const keptIn = (stderr: string) => /^Your version is kept in (.+)\.$/m.exec(stderr)?.[1] ?? ''
    const drafts = () => readdirSync(tmpdir()).filter((name) => name.startsWith('gamekeeper-edit-')).length

    test('writes back what the editor has saved, keeps the mode, and leaves no copy', async () => {
      writeFileSync(remote('motd.txt'), 'old')
      chmodSync(remote('motd.txt'), 0o640)
      const before = drafts()
      const { code, stdout, stderr } = await edit('/motd.txt', 'printf new >')
      assert.deepEqual([code, stdout], [0, 'Written /motd.txt\n'], stderr)
      assert.deepEqual([read('motd.txt'), statSync(remote('motd.txt')).mode & 0o777], ['new', 0o640])
      assert.equal(drafts(), before)
      const [replaced] = await json('files', 'trash', 'Castle')
      assert.deepEqual([replaced.path, replaced.reason], ['/motd.txt', 'replaced'])
    })

    test('what was not changed is not written', async () => {
      writeFileSync(remote('same.txt'), 'same')
      assert.equal((await edit('/same.txt', 'true')).stdout, 'Nothing was changed.\n')
      assert.equal((await edit('/never.txt', 'true')).stdout, 'Nothing was changed.\n')
      assert.equal(existsSync(remote('never.txt')), false)
    })

    test('a file that is not there is made, but not over one that somebody else has made meanwhile', async () => {
      const made = await edit('/fresh.txt', 'printf hello >')
      assert.deepEqual([made.code, read('fresh.txt')], [0, 'hello'])
      const late = await edit('/late.txt', `printf theirs > '${remote('late.txt')}'; printf ours >`)
      assert.deepEqual([late.code, read('late.txt')], [5, 'theirs'])
      assert.equal(readFileSync(keptIn(late.stderr), 'utf8'), 'ours')
      rmSync(dirname(keptIn(late.stderr)), { recursive: true })
      assert.equal((await runPiped(['files', 'edit', 'srv_0', '/x'], { ...envOf(), EDITOR: 'false' })).code, 4)
      assert.equal((await edit('/', 'true')).code, 2)
    })

    test('If somebody else has changed the file meanwhile, it is not overwritten, and your version is kept.', async () => {
      writeFileSync(remote('both.txt'), 'first')
      for (const theirs of [`printf theirs > '${remote('both.txt')}'`, `rm '${remote('both.txt')}'`]) {
        const { code, stderr } = await edit('/both.txt', `${theirs}; printf ours >`)
        assert.equal(code, 5)
        assert.match(stderr, /\/both\.txt was changed on the server meanwhile; nothing was written\./)
        assert.equal(readFileSync(keptIn(stderr), 'utf8'), 'ours')
        rmSync(dirname(keptIn(stderr)), { recursive: true })
        if (theirs.startsWith('printf')) assert.equal(read('both.txt'), 'theirs')
      }
      assert.equal(existsSync(remote('both.txt')), false)
    })

    test('an editor that fails writes nothing and the copy is kept', async () => {
      writeFileSync(remote('fails.txt'), 'old')
      const { code, stderr } = await edit('/fails.txt', 'printf half > "$1"; exit 7; true')
      assert.deepEqual([code, read('fails.txt')], [1, 'old'])
      assert.match(stderr, /The editor exited with 7; nothing was written/)
      assert.equal(readFileSync(keptIn(stderr), 'utf8'), 'half')
      rmSync(dirname(keptIn(stderr)), { recursive: true })
    })

    test('a write whose answer got lost is no conflict with itself', async () => {
      writeFileSync(remote('lost.txt'), 'old')
      let puts = 0
      const between = createServer(async (request, response) => {
        const body = Buffer.concat(await Array.fromAsync(request))
        const answer = await fetch(cli.service.url + request.url, {
          method: request.method ?? 'GET',
          headers: Object.entries(request.headers).filter(
            ([name]) => !/^(host|connection|content-length)$/.test(name),
          ) as [string, string][],
          ...(request.method === 'PUT' ? { body } : {}),
        })
        if (request.method === 'PUT' && puts++ === 0) return void response.destroy()
        response.writeHead(answer.status, Object.fromEntries(answer.headers))
        response.end(Buffer.from(await answer.arrayBuffer()))
      }).listen(0, '127.0.0.1')
      await once(between, 'listening')
      try {
        const url = `http://127.0.0.1:${(between.address() as AddressInfo).port}`
        const { code, stderr } = await edit('/lost.txt', 'printf new >', url)
        assert.deepEqual([code, read('lost.txt'), puts], [0, 'new', 2], stderr)
      } finally {
        between.closeAllConnections()
        between.close()
      }
    })
  })

  describe('files chmod', () => {
    test('changes the mode of each, or of none', async () => {
      for (const name of ['start.sh', 'ops.json']) writeFileSync(remote(name), name, { mode: 0o644 })
      const { code, stdout } = await run('files', 'chmod', 'Castle', '755', '/start.sh', 'ops.json')
      assert.deepEqual([code, stdout], [0, '0755 /start.sh\n0755 /ops.json\n'])
      assert.equal(statSync(remote('start.sh')).mode & 0o7777, 0o755)
      const [{ path, mode }] = await json('files', 'chmod', 'Castle', '0640', '/ops.json')
      assert.deepEqual([path, mode], ['/ops.json', '0640'])
      assert.equal((await run('files', 'chmod', 'Castle', '600', '/ops.json', '/nowhere')).code, 4)
      assert.equal(statSync(remote('ops.json')).mode & 0o7777, 0o640)
      for (const wrong of ['4755', 'u+x', '9']) {
        const { code, stderr } = await run('files', 'chmod', 'Castle', wrong, '/ops.json')
        assert.deepEqual([code, /is not a mode: three octal digits/.test(stderr)], [2, true], wrong)
      }
    })
  })

  describe('files undo --replace', () => {
    test('puts a file and a folder back under their own names; what had them goes to the trash', async () => {
      mkdirSync(remote('world'))
      writeFileSync(remote('world/level.dat'), 'old')
      writeFileSync(remote('seed'), 'old')
      await json('files', 'rm', 'Castle', '/world', '/seed')
      mkdirSync(remote('world'))
      writeFileSync(remote('world/other.dat'), 'new')
      writeFileSync(remote('seed'), 'new')
      const { restored } = await json('files', 'undo', 'Castle', '--replace')
      assert.deepEqual(restored.map(({ path }: { path: string }) => path).sort(), ['/seed', '/world'])
      assert.deepEqual(
        [read('seed'), read('world/level.dat'), readdirSync(remote('world'))],
        ['old', 'old', ['level.dat']],
      )
      const replaced = await json('files', 'trash', 'Castle', '--limit', '2')
      assert.deepEqual(replaced.map(({ path }: { path: string }) => path).sort(), ['/seed', '/world'])
      await json('files', 'undo', 'Castle', '/world', '--replace')
      assert.deepEqual(readdirSync(remote('world')), ['other.dat'])
    })

    test('an older version of a file that is still there comes back in its place', async () => {
      writeFileSync(remote('conf'), 'one')
      await json('files', 'put', 'Castle', localFile('two'), '--as', '/conf')
      assert.equal((await run('files', 'undo', 'Castle', '/conf', '--replace')).stdout, 'Restored /conf\n')
      assert.equal(read('conf'), 'one')
    })
  })

  describe('files put --contents', () => {
    test('sends what is in a directory and not the directory itself', async () => {
      const tree = join(cli.folder, 'old-server')
      mkdirSync(join(tree, 'plugins/empty'), { recursive: true })
      writeFileSync(join(tree, 'server.jar'), 'jar')
      writeFileSync(join(tree, '.hidden'), 'h')
      await json('files', 'put', 'Castle', tree, '--contents', '--to', '/moved')
      assert.deepEqual(readdirSync(remote('moved')).sort(), ['.hidden', 'plugins', 'server.jar'])
      assert.ok(statSync(remote('moved/plugins/empty')).isDirectory())
      await json('files', 'put', 'Castle', join(tree, 'plugins'), '--contents')
      assert.ok(statSync(remote('empty')).isDirectory())
    })

    test('two files that would become one are refused before anything is sent', async () => {
      for (const name of ['one', 'two']) {
        mkdirSync(join(cli.folder, name))
        writeFileSync(join(cli.folder, name, 'same.dat'), name)
      }
      const { code, stderr } = await run(
        'files',
        'put',
        'Castle',
        join(cli.folder, 'one'),
        join(cli.folder, 'two'),
        '--contents',
      )
      assert.equal(code, 2)
      assert.match(stderr, /would both become same\.dat/)
      assert.equal(existsSync(remote('same.dat')), false)
    })
  })
})

function localFile(text: string): string {
  const path = join(cli.folder, 'local.txt')
  writeFileSync(path, text)
  return path
}
