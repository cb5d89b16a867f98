import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { needs } from '../../../../test/support/needs.ts'
import { maskArguments } from './masks.ts'

function makeTop(t: TestContext, ...folders: string[]): string {
  const top = realpathSync(mkdtempSync(join(tmpdir(), 'gamekeeper-masks-')))
  t.after(() => rmSync(top, { recursive: true }))
  for (const folder of folders) mkdirSync(join(top, folder), { recursive: true })
  return top
}

const hidesFolder = (path: string) => ['--perms', '0000', '--tmpfs', path, '--remount-ro', path]

test('what is within a folder that is hidden is hidden with it, and nothing twice', (t) => {
  const top = makeTop(t, 'data/tls')
  const [data, other] = [join(top, 'data'), join(top, 'other.key')]
  writeFileSync(join(data, 'tls/own.key'), '')
  writeFileSync(other, '')
  assert.deepEqual(maskArguments([top], [data, join(data, 'tls/own.key'), other, data, join(top, 'missing')]), [
    ...hidesFolder(data),
    ...['--ro-bind', '/dev/null', other],
  ])
})

test('a key is hidden with its folder, so that one that takes its place is hidden too', (t) => {
  const top = makeTop(t, 'live', 'archive', 'later')
  writeFileSync(join(top, 'archive/1.pem'), '')
  symlinkSync('../archive/1.pem', join(top, 'live/key.pem'))
  assert.deepEqual(maskArguments([top], [join(top, 'live/key.pem'), join(top, 'later/key.pem')]), [
    ...['live', 'archive', 'later'].flatMap((name) => hidesFolder(join(top, name))),
  ])
})

test('a key in a folder above what is seen takes no mask away', (t) => {
  const above = makeTop(t, 'seen/data', 'seen/tls')
  const [seen, data, tls] = [join(above, 'seen'), join(above, 'seen/data'), join(above, 'seen/tls')]
  for (const key of [join(above, 'backup.key'), join(tls, 'own.key')]) writeFileSync(key, '')
  const expected = [...hidesFolder(data), ...hidesFolder(tls)]
  assert.deepEqual(maskArguments([seen], [data, join(above, 'backup.key'), join(tls, 'own.key')]), expected)
  assert.deepEqual(maskArguments([seen], [data, above, join(tls, 'own.key')]), expected, 'nor does a folder')
})

test('a folder that is mounted elsewhere too is hidden there, and so is what is below it', needs('bubblewrap'), (t) => {
  const top = makeTop(t, 'data/servers', 'seen/a b', 'seen/below', 'seen/covered')
  const at = (name: string) => join(top, name)
  const masks = JSON.stringify(import.meta.resolve('./masks.ts'))
  const code = `import { maskArguments } from ${masks}
    console.log(JSON.stringify(maskArguments(${JSON.stringify([at('seen')])}, ${JSON.stringify([at('data')])})))`
  const mounts = [
    ...['--bind', '/', '/', '--bind', at('data'), at('seen/a b'), '--bind', at('data/servers'), at('seen/below')],
    ...['--bind', at('data'), at('seen/covered'), '--tmpfs', at('seen/covered')],
  ]
  const said = execFileSync('bwrap', [...mounts, '--', process.execPath, '--input-type=module', '-e', code])
  assert.deepEqual(
    JSON.parse(said.toString()),
    ['seen/a b', 'seen/below'].flatMap((name) => hidesFolder(at(name))),
  )
})

test('a mount at a place that we may not reach keeps no game from starting', needs('bubblewrap'), (t) => {
  const top = makeTop(t, 'data', 'seen', 'closed/inner')
  const [data, seen, closed] = [join(top, 'data'), join(top, 'seen'), join(top, 'closed')]
  const masks = JSON.stringify(import.meta.resolve('./masks.ts'))
  const code = `import { chmodSync } from 'node:fs'
    import { maskArguments } from ${masks}
    chmodSync(${JSON.stringify(closed)}, 0)
    process.on('exit', () => chmodSync(${JSON.stringify(closed)}, 0o700))
    console.log(JSON.stringify(maskArguments(${JSON.stringify([seen])}, ${JSON.stringify([data])})))`
  const mounts = ['--bind', '/', '/', '--bind', data, join(closed, 'inner'), '--cap-drop', 'ALL']
  const said = execFileSync('bwrap', [...mounts, '--', process.execPath, '--input-type=module', '-e', code])
  assert.deepEqual(JSON.parse(said.toString()), [])
})
