// Completion as the shells see it: their own completion machinery, our script, the real command line and service.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { useCli } from '../../../test/support/cli.ts'
import { needs } from '../../../test/support/needs.ts'
import { BINARY, runPiped } from '../../../test/support/terminal.ts'
import { until } from '../../../test/support/until.ts'
import { splitLine } from '../shell-words.ts'

const cli = useCli()
const { run, json } = cli

const execFileAsync = promisify(execFile)

describe('completion', () => {
  let env: Record<string, string>
  before(async () => {
    const bin = join(cli.folder, 'bin')
    mkdirSync(bin)
    writeFileSync(join(bin, 'gamekeeper'), `#!/bin/sh\nexec "${process.execPath}" "${BINARY}" "$@"\n`)
    chmodSync(join(bin, 'gamekeeper'), 0o755)
    env = {
      ...cli.envOf(),
      PATH: `${bin}:${process.env.PATH}`,
      HOME: cli.folder,
      NODE_COMPILE_CACHE: join(cli.folder, 'compiled'),
    }
    await json('server', 'create', 'Castle')
    await json('server', 'create', 'Old Castle')
    await json('backup', 'create', 'Castle', '--name', 'Before the update')
    await json('backup', 'create', 'Castle', '--name', 'At 04:00:00')
  })

  // Not synchronously: the service that it asks lives in this process.
  // Whoever types waits for two seconds and no longer, which a busy machine may need: so it is asked again.
  const linesOf = (shell: string, script: string): Promise<string[]> =>
    until(async () => {
      const { stdout } = await execFileAsync(shell, ['-c', script], { env, cwd: cli.folder })
      const lines = stdout.split('\n').filter(Boolean)
      return lines.length > 0 && lines
    })
  const inBash = (line: string) =>
    linesOf(
      'bash',
      `eval "$(gamekeeper completion bash)"; COMP_LINE=${quoted(line)}; COMP_POINT=\${#COMP_LINE}; _gamekeeper
       printf '%s\\n' "\${COMPREPLY[@]}"; complete -p gamekeeper >&2`,
    )
  const words = async (...given: string[]) => {
    const { stdout } = await run('completion', 'words', '--', ...given)
    return stdout.split('\n').flatMap((line) => line.split('\t')[0] || [])
  }

  test('bash: commands, options, and names of servers and backups, quoted where needed', async () => {
    assert.deepEqual(await inBash('gamekeeper sch'), ['schedule'])
    assert.deepEqual(await inBash('gamekeeper backup ver'), ['versions', 'verify'])
    assert.deepEqual(await inBash('gamekeeper server ls --lim'), ['--limit'])
    assert.deepEqual(await inBash('gamekeeper server show O'), ['Old\\ Castle'])
    assert.deepEqual(await inBash('gamekeeper server show "O'), ['Old Castle'])
    assert.deepEqual(await inBash('gamekeeper backup show Castle Before\\ t'), ['Before\\ the\\ update'])
    assert.deepEqual(await inBash('gamekeeper backup show Castle At\\ 04:0'), ['00:00'])
    assert.deepEqual(await inBash('gamekeeper token create ci --scope servers:r'), ['read'])
  })

  test('zsh: the same words', needs('zsh'), async () => {
    const script = `autoload -Uz compinit && compinit -u; eval "$(gamekeeper completion zsh)"
        compadd() { local name=$@[-1]; print -rl -- "\${(@P)name}" }
        words=(gamekeeper backup show Castle 'Before\\ t'); CURRENT=5; _gamekeeper`
    assert.deepEqual(await linesOf('zsh', script), ['Before the update'])
  })

  test('fish: the same words', needs('fish'), async () => {
    const script = "gamekeeper completion fish | source; complete -C 'gamekeeper backup show Castle Bef'"
    assert.match((await linesOf('fish', script)).join('\n'), /^Before\\? the\\? update\tbkp_\w+$/)
  })

  test('knows options that stand before, values, aliases, and what was given already', async () => {
    assert.deepEqual(await words('--url', 'http://x', 'sub'), ['subdomain'])
    assert.deepEqual(await words('server', 'list', '--json', '--j'), [])
    assert.deepEqual(await words('schedule', 'set', 'Castle', 'x', '--enabled', ''), ['yes', 'no'])
    assert.deepEqual(await words('backup', 'compare', 'Castle', 'latest', 'l'), ['latest'])
    assert.deepEqual(await words('backup', 'rm', 'Castle', 'latest', 'l'), ['latest'])
    assert.deepEqual(await words('backup', 'restore', 'Castle', 'latest', '--into', 'C'), ['Castle'])
    assert.deepEqual(await words('server', 'show', 'Castle', ''), [])
    assert.deepEqual(await words('files', 'put', 'Castle', ''), [])
    assert.deepEqual(await words('nowhere', ''), [])
    assert.ok((await words('activity', '')).includes('verify'))
    assert.ok((await words('activity', '')).includes('Castle'))
    assert.equal((await words('')).length > 10, true)
  })

  test('without a token, or a service that answers, it offers what it knows by itself', async () => {
    const alone = await runPiped(['completion', 'words', '--', 'server', 'show', ''], {})
    assert.deepEqual([alone.code, alone.stdout, alone.stderr], [0, '', ''])
  })
})

test('a line is cut into words as bash does it', () => {
  assert.deepEqual(splitLine('a "b c" d\\ e f\'g h\'i '), { words: ['a', 'b c', 'd e', 'fg hi', ''], quote: '' })
  assert.deepEqual(splitLine('a "b\\" c'), { words: ['a', 'b" c'], quote: '"' })
  assert.deepEqual(splitLine("a '\\x"), { words: ['a', '\\x'], quote: "'" })
})

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
