// Backups and schedules by name, by the beginning of a name or an id, and by `latest`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { useCli } from '../../test/support/cli.ts'
import { runPiped } from '../../test/support/terminal.ts'
import type { Backup } from '../sdk/index.ts'
import { BACKUP, pick } from './references.ts'

const cli = useCli()
const { run, json, envOf } = cli

/** Made one after the other, so that the last is the newest. */
async function backUp(server: string, ...names: string[]): Promise<string[]> {
  const ids = []
  for (const name of names) ids.push((await json('backup', 'create', server, '--name', name)).id)
  return ids
}

test('a backup is named by its id, its name, the beginning of either, or latest', async () => {
  await json('server', 'create', 'Castle')
  const [update, war, last] = await backUp('Castle', 'Before the update', 'Before the war', 'Nightly')
  const shown = async (reference: string) => (await json('backup', 'show', 'Castle', reference)).id
  assert.equal(await shown('Before the war'), war)
  assert.equal(await shown('Before the u'), update)
  assert.equal(await shown(last?.slice(0, -1) ?? ''), last)
  assert.equal(await shown('latest'), last)
  const said = await run('backup', 'lock', 'Castle', 'Night')
  assert.equal(said.stderr, `Night is Nightly (${last}).\n`)
  assert.equal((await run('backup', 'lock', 'Castle', 'Nightly')).stderr, '', 'a whole name needs no explanation')
  assert.equal((await json('backup', 'unlock', 'Castle', 'latest')).isLocked, false)
  for (const words of [['browse'], ['verify'], ['download', '-o', '-'], ['restore']]) {
    const [verb = '', ...options] = words
    assert.equal((await run('backup', verb, 'Castle', 'Before the w', ...options)).code, 0, verb)
  }
})

test('An ambiguous reference is refused, with the candidates listed.', async () => {
  await json('server', 'create', 'Ambiguous')
  const ids = await backUp('Ambiguous', 'Before a', 'Before b', 'Twin', 'Twin')
  for (const [reference, candidates] of [
    ['Before', ids.slice(0, 2)],
    ['Twin', ids.slice(2)],
    ['bkp_', ids],
  ] as const) {
    const { code, stderr } = await run('backup', 'rm', 'Ambiguous', 'Before a', reference)
    assert.equal(code, 5)
    for (const id of candidates) assert.match(stderr, new RegExp(`^  ${id}  `, 'm'))
  }
  const { stderr } = await run('backup', 'rm', 'Ambiguous', 'Before', '--json')
  assert.equal(JSON.parse(stderr).error.code, 'ambiguous')
  assert.equal((await run('backup', 'rm', 'Ambiguous', '')).code, 2)
  const absent = await run('backup', 'rm', 'Ambiguous', 'Nowhere')
  assert.equal(absent.code, 4)
  assert.match(absent.stderr, /There is no backup "Nowhere"\. "gamekeeper backup ls SERVER" lists them\./)
  assert.equal((await json('backup', 'ls', 'Ambiguous')).length, 4, 'a refusal deletes nothing')
})

test('a whole name counts before the beginning of another, and a name of latest must be meant', async () => {
  await json('server', 'create', 'Names')
  const [short] = await backUp('Names', 'Day', 'Day 2', 'latest', 'after')
  assert.equal((await json('backup', 'show', 'Names', 'Day')).id, short)
  assert.equal((await run('backup', 'show', 'Names', 'latest')).code, 5)
})

test('latest is the newest backup that has completed', () => {
  const backup = (id: string, status: Backup['status'], name = id) => ({ id, name, status }) as Backup
  const backups = [backup('bkp_1', 'completed'), backup('bkp_4', 'failed'), backup('bkp_2', 'completed')]
  assert.equal(pick(BACKUP, [...backups, backup('bkp_3', 'running')], 'latest').id, 'bkp_2')
  assert.throws(() => pick(BACKUP, [backup('bkp_1', 'failed', 'latest one')], 'latest'), /There is no completed backup/)
})

test('of many candidates the first ten are shown, and no name can steer the terminal', () => {
  const many = Array.from({ length: 12 }, (_, index) => ({ id: `bkp_${index}`, name: `n${index}\u202e` }) as Backup)
  assert.throws(
    () => pick(BACKUP, many, 'n'),
    (error: Error) => /matches 12 backups.*\n(?: {2}bkp_\d {2}n\d\\u202e\n){10} {2}and 2 more$/.test(error.message),
  )
})

test('a schedule is named in the same ways', async () => {
  await json('server', 'create', 'Planned')
  await run('schedule', 'add', 'Planned', 'Nightly', '0 4 * * *')
  const [weekly] = await json('schedule', 'add', 'Planned', 'Weekly', '0 4 * * 1')
  assert.equal((await json('schedule', 'set', 'Planned', 'Week', '--enabled', 'no'))[0].id, weekly.id)
  assert.equal((await run('schedule', 'set', 'Planned', 'sch_', '--enabled', 'no')).code, 5)
  assert.deepEqual(await json('schedule', 'delete', 'Planned', 'latest'), { deleted: weekly.id })
  assert.equal((await run('schedule', 'rm', 'Planned', 'Weekly')).code, 4)
  assert.equal((await run('schedule', 'rm', 'Planned', 'Nightly')).code, 0)
})

test('a token that may not list can still use ids', async () => {
  const { id: serverId } = await json('server', 'create', 'Idful')
  const [id = ''] = await backUp('Idful', 'Only')
  const { token } = await cli.service.mint(['backups:write'], [serverId])
  assert.equal((await runPiped(['backup', 'lock', serverId, id], envOf(token))).code, 0)
  assert.equal((await runPiped(['backup', 'lock', serverId, 'latest'], envOf(token))).code, 3)
})

test('a token for one server knows that server by its name, and no other', async () => {
  const { id: serverId } = await json('server', 'create', 'Bound')
  await json('server', 'create', 'Foreign')
  const [id = ''] = await backUp('Bound', 'Only')
  const { token } = await cli.service.mint(['backups:write'], [serverId])
  assert.equal((await runPiped(['backup', 'lock', 'Bound', id], envOf(token))).code, 0)
  assert.equal((await runPiped(['backup', 'lock', 'Foreign', id], envOf(token))).code, 4)
  const everywhere = await cli.service.mint(['backups:write'])
  assert.equal((await runPiped(['backup', 'lock', 'Bound', id], envOf(everywhere.token))).code, 3)
  const doctor = await runPiped(['doctor'], envOf(token))
  assert.match(doctor.stdout, /^ok +token +"test" has backups:write on "Bound"$/m)
})

test('list, delete and -v are other names of ls, rm and --version', async () => {
  await json('server', 'create', 'Other')
  await backUp('Other', 'One')
  assert.deepEqual(await json('backup', 'list', 'Other'), await json('backup', 'ls', 'Other'))
  assert.match((await run('backup', 'delete', 'Other', 'latest')).stdout, /^Deleted bkp_/)
  assert.equal((await run('-v')).stdout, (await run('--version')).stdout)
  assert.match((await run('server', '--help')).stdout, /server ls .*\(also "list"\)/)
  assert.match((await run('server', 'list', '--help')).stdout, /^Usage: gamekeeper server ls/m)
  assert.equal((await run('backup', 'toString', 'Other')).code, 2)
})
