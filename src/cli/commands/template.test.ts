import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { useCli } from '../../../test/support/cli.ts'
import { ownTemplate } from '../../../test/support/operations.ts'
import { runPiped } from '../../../test/support/terminal.ts'
import { PTDL_V2 } from '../../templates/eggs/eggs.testing.ts'
import { EXIT } from '../exit-codes.ts'

const cli = useCli()
const { run, json } = cli

function write(name: string, text: string): string {
  const path = join(cli.folder, name)
  writeFileSync(path, text)
  return path
}

test('gamekeeper template check FILE says what is wrong, line by line, without a service', async () => {
  const bad = write(
    'bad.yaml',
    'format: 1\nid: mine\nname: Mine\nruntimes: [process]\nstart:\n  args: [./x, "{{Y}}"]\nstop: []\n',
  )
  const nobody = { GAMEKEEPER_URL: 'http://127.0.0.1:9', GAMEKEEPER_TOKEN: '' }
  const { code, stdout } = await runPiped(['template', 'check', bad], nobody)
  assert.equal(code, EXIT.failed)
  assert.equal(stdout, `${bad}:7: /stop must NOT have fewer than 1 items\n`)
  const broken = write('broken.json', '{\n  "format": 1,\n  "id": mine\n}\n')
  assert.match((await runPiped(['template', 'check', broken], nobody)).stdout, /broken\.json:3: is not valid JSON/)
  const good = write('good.json', JSON.stringify(ownTemplate('good')))
  const egg = write('egg.json', JSON.stringify(PTDL_V2, null, 2))
  const checked = await runPiped(['template', 'check', good, egg], nobody)
  assert.equal(checked.code, EXIT.ok)
  assert.match(checked.stdout, /good\.json is a template\./)
  assert.match(checked.stdout, /egg\.json:\d+: changed \/config\/stop \^\^C is sent as SIGINT/)
  assert.match(checked.stdout, /egg\.json is a template\./)
})

test('templates are imported, listed, shown and removed', async () => {
  const egg = write('egg.json', JSON.stringify(PTDL_V2))
  const imported = await run('template', 'import', egg, '--id', 'my-egg')
  assert.equal(imported.code, 0, imported.stderr)
  assert.match(imported.stdout, /dropped \/variables\/10 has no name/)
  assert.doesNotMatch(imported.stdout, / carried /)
  assert.match(imported.stdout, /Added my-egg \(Every Rule\)\.\n$/)
  assert.equal((await run('template', 'import', egg, '--id', 'my-egg')).code, EXIT.conflict)
  const [again] = await json('template', 'import', egg, '--id', 'my-egg', '--replace')
  assert.equal(again.template.id, 'my-egg')
  assert.match((await run('template', 'list')).stdout, /my-egg +Every Rule +own +not by us +container/)
  assert.match((await run('template', 'show', 'my-egg')).stdout, /MAX_PLAYERS +integer +20 +yes/)
  const options = ['--variable', 'MAX_PLAYERS=30', '--variable', 'LICENSE_KEY=12345678']
  const created = await json('server', 'create', 'Castle', '--template', 'my-egg', ...options)
  assert.deepEqual([created.game, created.variables], ['my-egg', { MAX_PLAYERS: 30, LICENSE_KEY: null }])
  assert.match((await run('server', 'show', 'Castle')).stdout, /Variables +MAX_PLAYERS=30, LICENSE_KEY=\(not shown\)/)
  const wrong = await run('server', 'set', 'Castle', '--variable', 'MAX_PLAYERS=300')
  assert.deepEqual([wrong.code, /MAX_PLAYERS must be at most 100/.test(wrong.stderr)], [EXIT.usage, true])
  assert.deepEqual((await json('server', 'set', 'Castle', '--variable', 'MAX_PLAYERS=')).variables, {
    LICENSE_KEY: null,
  })
  const refused = await run('template', 'remove', 'my-egg')
  assert.equal(refused.code, EXIT.conflict)
  const yaml = write(
    'mine.yaml',
    'format: 1\nid: mine\nname: Mine\nruntimes: [process]\nstart: {args: [./x]}\nstop: [{signal: SIGINT, timeoutSeconds: 5}]\n',
  )
  assert.equal((await run('template', 'import', yaml)).stdout, 'Added mine (Mine).\n')
  assert.equal((await run('template', 'rm', 'mine')).stdout, 'Deleted mine.\n')
})
