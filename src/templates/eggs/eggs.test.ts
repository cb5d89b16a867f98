import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { stringify } from 'yaml'
import type { ReportEntry } from '../../contract/games/templates.ts'
import { mediaTypeOf, readTemplate, UnreadableTemplate } from '../read.ts'
import { resolveLaunch, resolveTemplate } from '../resolve.ts'
import { EGGS, PLCN_V1, PLCN_V2, PLCN_V3, PTDL_V1, PTDL_V2 } from './eggs.testing.ts'

const SERVER = { id: 'srv_1', name: 'Castle', port: 4000, memoryBytes: 1024 ** 3 }
const read = (egg: unknown) => readTemplate(JSON.stringify(egg), 'application/json')
const about = (report: readonly ReportEntry[], path: string) =>
  report.filter((entry) => entry.path === path).map(({ level, message }) => `${level}: ${message}`)

/** Every value of an egg by its path, found without any help of the import. */
function leavesOf(value: unknown, path = ''): [string, unknown][] {
  const isText = typeof value === 'string' && /^\/config\/(files|startup|logs)$/.test(path)
  const inner = isText && value !== '' ? JSON.parse(value) : value
  if (inner === null || inner === '') return []
  if (typeof inner !== 'object') return [[path, inner]]
  return Object.entries(inner).flatMap(([name, child]) =>
    leavesOf(child, `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`),
  )
}

/** Compares the import with the egg: every value of the egg must be in the report, and what the report says must be true. */
function assertNothingIsLost(egg: unknown, { template, report }: ReturnType<typeof readTemplate>): void {
  const kept = JSON.stringify(template)
  for (const [path, value] of leavesOf(egg)) {
    const entries = report.filter((entry) => path === entry.path || path.startsWith(`${entry.path}/`))
    assert.ok(entries.length > 0, `nothing is said of ${path}`)
    const isVerbatim =
      entries.every(({ level }) => level === 'carried') && !/rules|sort|field_type|user_|parser/.test(path)
    // A value that was carried over is in the template, as it is.
    if (isVerbatim)
      assert.ok(kept.includes(JSON.stringify(String(value)).slice(1, -1)), `${path} is not in the template`)
  }
}

test('Every value of an egg is in the report, at its own path or with what it belongs to: what nobody claims during the import is reported as dropped.', () => {
  for (const [version, egg] of Object.entries(EGGS)) {
    const imported = read(egg)
    assert.equal(imported.template.origin?.version.toUpperCase(), version)
    assertNothingIsLost(egg, imported)
    assert.deepEqual(readTemplate(stringify(egg), 'application/yaml').template, imported.template)
    const values = { NAME: 'x' }
    const known = imported.template.variables?.some(({ name }) => name === 'NAME') ? values : {}
    if (version !== 'PTDL_V2') assert.equal(resolveLaunch(imported.template, known, SERVER).ports[0]?.port, 4000)
  }
})

test('a plain startup is a list of arguments, and a value never becomes more than one of them', () => {
  const { template, report } = read(PTDL_V1)
  assert.deepEqual(template.start.args, [
    './old',
    '-port',
    '{{server.port}}',
    '-name',
    '{{SERVER_NAME}}',
    { if: 'EXTRA', args: ['{{EXTRA}}'] },
  ])
  assert.equal(about(report, '/startup').length, 2)
  const values = { SERVER_NAME: 'a "b" $(id)', EXTRA: '-x -y; reboot' }
  const { argv, shellLine, environment } = resolveLaunch(template, values, SERVER)
  assert.deepEqual(argv, ['./old', '-port', '4000', '-name', 'a "b" $(id)', '-x -y; reboot'])
  assert.deepEqual([shellLine, environment.EXTRA, environment.SERVER_MEMORY], [null, '-x -y; reboot', '1024'])
  assert.equal(resolveLaunch(template, { SERVER_NAME: 'a' }, SERVER).argv.length, 5)
})

test('startup lines with shell syntax run in a container only, with variables passed by environment', () => {
  const { template, report } = read(PLCN_V1)
  assert.deepEqual([template.start.shell, template.runtimes], ['bash', ['container']])
  const { argv, shellLine, environment } = resolveLaunch(template, { NAME: "'; reboot #" }, SERVER)
  assert.equal(shellLine, `[[ -f x ]] && ./game --name ''"\${NAME}"'' > >(cat)`)
  assert.deepEqual(argv, ['bash', '-c', shellLine])
  assert.equal(environment.NAME, "'; reboot #")
  assert.match(about(report, '/startup')[0] ?? '', /changed: has shell syntax: runs under bash -c in a container only/)
  assert.equal(read(PLCN_V2).template.start.shellLine, `cd /home/container; ./game --port \${SERVER_PORT}`)
})

test('of several start commands the first is kept', () => {
  const { template, report } = read(PLCN_V3)
  assert.deepEqual(template.start.args, ['./game', { if: 'NAME', args: ['{{NAME}}'] }])
  assert.match(about(report, '/startup_commands/Debug')[0] ?? '', /^dropped/)
  assert.match(about(report, '/icon')[0] ?? '', /^dropped/)
  assert.deepEqual(
    template.variables?.map(({ name }) => name),
    ['NAME', 'SECOND'],
  )
})

test('config.stop: a command, ^C, and the stray ^^C, which is SIGINT here and says so', () => {
  const stopOf = (stop: unknown) => {
    const { template, report } = read({ ...PTDL_V1, config: { ...PTDL_V1.config, stop } })
    const [first] = template.stop
    return [first?.command ?? first?.signal, about(report, '/config/stop')[0] ?? '']
  }
  assert.deepEqual(stopOf('stop'), ['stop', 'carried: as it is'])
  assert.deepEqual(stopOf('/stop')[0], '/stop')
  assert.deepEqual(stopOf('^C'), ['SIGINT', 'changed: ^C is SIGINT, then SIGTERM, and only then SIGKILL'])
  assert.deepEqual(stopOf('^SIGTERM')[0], 'SIGTERM')
  for (const stray of ['^^C', '^X', '^SIGKILL'])
    assert.match(stopOf(stray).join(' '), /^SIGINT changed: .* is sent as SIGINT.*; elsewhere it ends in SIGKILL$/)
  assert.deepEqual(stopOf(''), ['SIGTERM', ''])
  assert.match(stopOf({ a: 1 }).join(' '), /^SIGTERM /)
})

test('variables become typed by their rules, and rules that cannot be carried over are reported', () => {
  const { template, report } = read(PTDL_V2)
  const byName = Object.fromEntries((template.variables ?? []).map((variable) => [variable.name, variable]))
  const pick = (name: string) => {
    const { title: _title, description: _description, name: _name, ...rest } = byName[name] ?? { type: 'none' }
    return rest as unknown
  }
  const required = { isRequired: true }
  assert.deepEqual(pick('MAP'), { type: 'choice', ...required, choices: ['one', 'two', 'three, four'], default: 'one' })
  assert.deepEqual(pick('MAX_PLAYERS'), { type: 'integer', ...required, min: 1, max: 100, default: 20 })
  assert.deepEqual(pick('NAME'), {
    ...{ type: 'text', ...required, default: 'Game' },
    ...{ pattern: '^[\\w ]{1,30}$', noneOf: ['admin', 'root'] },
  })
  assert.deepEqual(pick('RATE'), { type: 'number', min: 0.5, default: 1.5 })
  assert.deepEqual(pick('ON'), { type: 'boolean', ...required, whenTrue: '1', whenFalse: '0', default: true })
  assert.deepEqual(pick('URL'), { type: 'text', form: 'url', pattern: '(\\.zip)$', maxLength: 200 })
  assert.deepEqual(pick('LICENSE_KEY'), {
    ...{ type: 'secret', ...required, default: 'ABCDEFGH' },
    ...{ form: 'alphanumeric', minLength: 8, maxLength: 8, isVisible: false, isEditable: false },
  })
  assert.deepEqual(pick('CODE'), { type: 'text', form: 'digits', minLength: 2, maxLength: 4, default: '123' })
  assert.deepEqual(pick('WRONG'), { type: 'integer', ...required, max: 5 })
  assert.match(about(report, '/variables/3/rules')[0] ?? '', /dropped: "regex:.*" cannot be matched in linear time/)
  assert.match(about(report, '/variables/4/rules')[0] ?? '', /dropped: "gt:0" is not known for a number/)
  assert.match(about(report, '/variables/8/rules')[0] ?? '', /dropped: "confirmed" is not known/)
  assert.match(about(report, '/variables/9/default_value')[0] ?? '', /changed: "9" must be at most 5 by its own rules/)
  assert.match(about(report, '/variables/10')[0] ?? '', /dropped: has no name/)
  assert.match(about(report, '/variables/11')[0] ?? '', /dropped: is there twice/)
})

test('config.files: every parser, wildcards, conditions, and what cannot be carried over', () => {
  const { template, report } = read(PTDL_V2)
  const files = Object.fromEntries((template.configFiles ?? []).map((file) => [file.path, file]))
  assert.deepEqual(files['/a.json']?.settings, [
    { key: ['net', 'port'], value: '{{server.port}}', isNumeric: true },
    { key: ['debug'], value: false },
    { key: ['dotted.name'], value: 1 },
  ])
  assert.deepEqual(files['/b.yml']?.settings, [
    { key: ['servers', '*', 'address'], value: '{{server.address}}', isNumeric: true, ifMatches: '^127\\.0\\.0\\.1$' },
  ])
  assert.deepEqual(files['/c.ini']?.settings, [
    { key: ['/Script/Engine.Game', 'MaxPlayers'], value: '{{MAX_PLAYERS}}' },
  ])
  assert.deepEqual(files['/d.xml']?.settings, [
    { key: ['settings', "property[@name='Port']", '@value'], value: '{{server.port}}' },
  ])
  assert.deepEqual(files['/e.cfg'], {
    path: '/e.cfg',
    format: 'text',
    settings: [{ key: ['hostname '], value: 'hostname "{{NAME}}"' }],
  })
  assert.deepEqual(files['/f.yml']?.settings, [{ key: ['on', 'old'], value: 'no', isNumeric: true, ifEquals: 'yes' }])
  assert.match(about(report, '/config/files/f.yml/find/listeners/localhost')[0] ?? '', /^dropped: names what nothing/)
  assert.match(about(report, '/config/files/g.bin')[0] ?? '', /^dropped: has a parser that is not known: magic/)
  assert.match(about(report, '/config/files/..~1h.txt')[0] ?? '', /^dropped: is no path/)
  assert.deepEqual(template.ready, ['Ready'])
  assert.match(about(report, '/config/startup/done/1')[0] ?? '', /^dropped: is a regular expression/)
  assert.equal(read(PLCN_V2).template.configFiles?.[0]?.format, 'toml')
})

test('the install script runs in its container, and is refused on the process runtime', () => {
  const { template } = read(PTDL_V1)
  assert.deepEqual(template.runtimes, ['container'])
  const values = { SERVER_NAME: 'x' }
  assert.deepEqual(resolveTemplate(template, values, SERVER).install, [
    { do: 'script', image: 'debian:stable-slim', entrypoint: 'bash', text: '#!/bin/bash\necho installed' },
  ])
  const onProcess = { ...template, runtimes: ['process'] }
  assert.throws(
    () => read(onProcess),
    (error) => {
      assert.ok(error instanceof UnreadableTemplate)
      return error.faults.some(({ path, message }) => path === '/install/0' && /container only/.test(message))
    },
  )
})

test('a key that is there twice, a field that nobody knows and a text that is no JSON are in the report', () => {
  const text = JSON.stringify(PTDL_V1).replace('"author":', '"author":"first","author":')
  const { report } = readTemplate(text, 'application/json')
  assert.ok(about(report, '/author').includes('dropped: is there twice: the last one counts'))
  const odd = { ...PTDL_V1, new: { deep: [1, { x: true }] }, config: { ...PTDL_V1.config, files: '{broken' } }
  const { report: other } = read(odd)
  assert.match(about(other, '/new/deep/0')[0] ?? '', /^dropped/)
  assert.match(about(other, '/new/deep/1/x')[0] ?? '', /^dropped/)
  assert.deepEqual(about(other, '/config/files'), ['dropped: is a text that is not JSON'])
})

const EGGS_DIRECTORY = process.env.GAMEKEEPER_TEST_EGGS ?? join(import.meta.dirname, '../../../../shared/eggs')
const skip = existsSync(EGGS_DIRECTORY) ? false : 'no folder of eggs: GAMEKEEPER_TEST_EGGS names one'

test('eggs as people have them are imported, and none loses anything without its report saying so', { skip }, () => {
  const names = readdirSync(EGGS_DIRECTORY).filter((name) => /^[^.].*egg.*\.(json|ya?ml)$/.test(name))
  assert.ok(names.length > 0)
  for (const name of names) {
    const text = readFileSync(join(EGGS_DIRECTORY, name), 'utf8')
    const type = mediaTypeOf(text)
    const imported = readTemplate(text, type)
    if (type === 'application/json') assertNothingIsLost(JSON.parse(text), imported)
    const isStated = imported.report.some(({ level }) => level === 'changed')
    assert.ok(isStated, name)
  }
})
