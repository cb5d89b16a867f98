import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isFailure } from '../contract/errors.ts'
import type { Template, TemplateVariable } from '../contract/games/template-format.ts'
import { templateFaults } from './check.ts'
import { compilePattern } from './linear-pattern.ts'
import { readTemplate, UnreadableTemplate } from './read.ts'
import { resolveLaunch } from './resolve.ts'

const SERVER = { id: 'srv_1', name: 'Castle', port: 4000, memoryBytes: null }
const templateWith = (more: Partial<Template>): Template => ({
  format: 1,
  id: 'mine',
  name: 'Mine',
  runtimes: ['process'],
  start: { args: ['./game', '{{A}}'] },
  stop: [{ command: 'stop', timeoutSeconds: 10 }],
  variables: [{ name: 'A', type: 'text' }],
  ...more,
})

function faultsWith(variable: Partial<TemplateVariable>, value: string | number | boolean): string[] {
  const template = templateWith({ variables: [{ name: 'A', type: 'text', ...variable }] })
  try {
    resolveLaunch(template, { A: value }, SERVER)
    return []
  } catch (error) {
    assert.ok(isFailure(error, 'invalid_request'))
    assert.equal(error.errors?.[0]?.path, '/variables/A')
    return (error.errors ?? []).map(({ message }) => message)
  }
}

test('every variable that is missing or invalid is named with what is wrong', () => {
  const template = templateWith({
    variables: [
      { name: 'A', type: 'text', isRequired: true },
      { name: 'B', type: 'integer', min: 1, max: 5 },
    ],
  })
  assert.throws(
    () => resolveLaunch(template, { B: 9, C: 'x' }, SERVER),
    (error) => {
      assert.ok(isFailure(error, 'invalid_request'))
      assert.deepEqual(error.errors, [
        { path: '/variables/C', message: 'is no variable of the template' },
        { path: '/variables/A', message: 'is required' },
        { path: '/variables/B', message: 'must be at most 5' },
      ])
      return true
    },
  )
  const cases: [Partial<TemplateVariable>, string | number | boolean, RegExp | null][] = [
    [{ maxLength: 3 }, 'abc', null],
    [{ maxLength: 3 }, '👍👍👍👍', /at most 3/],
    [{ minLength: 3 }, 'ab', /at least 3/],
    [{}, 'a\nb', /one line/],
    [{}, 'a\u0000', /one line/],
    [{ form: 'url' }, 'https://example.org/x', null],
    [{ form: 'url' }, 'javascript:alert(1)', /http/],
    [{ form: 'ip' }, '::1', null],
    [{ form: 'digits' }, '12a', /digits/],
    [{ noneOf: ['admin'] }, 'admin', /none of/],
    [{ pattern: '^[a-z]+\\.jar$' }, 'paper.jar', null],
    [{ pattern: '^[a-z]+\\.jar$' }, '../paper.jar', /must match/],
    [{ type: 'integer' }, '12', null],
    [{ type: 'integer' }, 1.5, /whole/],
    [{ type: 'integer' }, '0x10', /number/],
    [{ type: 'number', min: 0.5 }, '0.25', /at least 0.5/],
    [{ type: 'boolean' }, 'false', null],
    [{ type: 'boolean' }, 'perhaps', /true or false/],
    [{ type: 'choice', choices: ['a', 'b'] }, 'c', /one of a, b/],
    [{ type: 'secret', minLength: 8 }, 'short', /at least 8/],
  ]
  for (const [variable, value, fault] of cases) {
    const found = faultsWith(variable, value)
    if (fault === null) assert.deepEqual(found, [], String(value))
    else assert.match(found[0] ?? 'no fault', fault, String(value))
  }
})

test('A value never becomes more than one argument, and is not looked through for placeholders again.', () => {
  const text = fc
    .string({ maxLength: 40 })
    .filter((value) => !/[\p{Cc}\u2028\u2029]/u.test(value) && value.isWellFormed())
  fc.assert(
    fc.property(text, text, (one, other) => {
      const template = templateWith({
        start: { args: ['./game', '-x={{A}}', '{{B}}', '{{server.port}}'], environment: { A: '{{A}}' } },
        variables: [
          { name: 'A', type: 'text' },
          { name: 'B', type: 'text' },
        ],
      })
      const { argv, environment } = resolveLaunch(template, { A: one, B: other }, SERVER)
      assert.deepEqual([argv, environment], [['./game', `-x=${one}`, other, '4000'], { A: one }])
    }),
  )
  const nested = resolveLaunch(templateWith({}), { A: '{{server.name}}' }, SERVER)
  assert.deepEqual(nested.argv, ['./game', '{{server.name}}'])
})

test('names by which a loader runs other code are refused for a process of the machine', () => {
  const faultsOf = (name: string, more: Partial<Template> = {}) =>
    templateFaults(templateWith({ start: { args: ['./game'], environment: { [name]: 'x' } }, ...more }))
  for (const name of ['LD_PRELOAD', 'LD_AUDIT', 'GLIBC_TUNABLES', 'GCONV_PATH', 'BASH_ENV', 'GAMEKEEPER_ENTRY'])
    assert.deepEqual(
      faultsOf(name).map(({ path }) => path),
      [`/start/environment/${name}`],
    )
  assert.deepEqual(faultsOf('LD_LIBRARY_PATH'), [], 'games bring libraries')
  const images = [{ name: 'Game', image: 'game' }]
  assert.deepEqual(faultsOf('LD_PRELOAD', { runtimes: ['container'], images }), [], 'it is loaded inside')
})

test('ports come from the server, an offset, a variable or the template, and wrong ones are refused', () => {
  const template = templateWith({
    defaultPort: 7000,
    variables: [{ name: 'A', type: 'integer', default: 27015 }],
    ports: [
      { name: 'game', protocol: 'udp' },
      { name: 'query', protocol: 'udp', offset: 1 },
      { name: 'rcon', protocol: 'tcp', variable: 'A' },
      { name: 'web', protocol: 'tcp', fixed: 80 },
    ],
  })
  const portsOf = (port: number | null, A?: number) =>
    resolveLaunch(template, A === undefined ? {} : { A }, { ...SERVER, port }).ports.map((each) => each.port)
  assert.deepEqual(portsOf(4000), [4000, 4001, 27015, 80])
  assert.deepEqual(portsOf(null, 1), [7000, 7001, 1, 80])
  assert.throws(() => portsOf(65535), /port gives no port for query/)
  assert.throws(() => portsOf(4000, 0), /variables\/A gives no port for rcon/)
  const { defaultPort: _, ...withoutDefault } = template
  assert.throws(() => resolveLaunch(withoutDefault, {}, { ...SERVER, port: null }), /port is required/)
})

test('values keep their types in formats that have types', () => {
  const template = templateWith({
    variables: [
      { name: 'A', type: 'integer', default: 5 },
      { name: 'B', type: 'boolean', default: true },
      { name: 'C', type: 'boolean', default: true, whenTrue: '1', whenFalse: '0' },
    ],
    configFiles: [
      {
        path: '/x.json',
        format: 'json',
        settings: [
          { key: ['a'], value: '{{A}}' },
          { key: ['b'], value: '{{B}}' },
          { key: ['c'], value: '{{C}}' },
          { key: ['d'], value: 'x{{A}}' },
          { key: ['e'], value: '{{server.port}}' },
          { key: ['f'], value: '4{{A}}', isNumeric: true },
        ],
      },
    ],
  })
  const [file] = resolveLaunch(template, {}, SERVER).configFiles
  assert.deepEqual(
    file?.settings.map(({ value }) => value),
    [5, true, '1', 'x5', 4000, 45],
  )
})

const QUIESCE = { before: ['save everything'], timeoutSeconds: 1, after: [] }

test('what holds a world still over a connection has its port and its password from the values of the server', () => {
  const template = templateWith({
    start: { args: ['./game'] },
    variables: [
      { name: 'RCON_PORT', type: 'integer', default: 25575 },
      { name: 'PASSWORD', type: 'secret' },
    ],
    ports: [{ name: 'rcon', protocol: 'tcp', variable: 'RCON_PORT' }],
    quiesce: { ...QUIESCE, via: 'rcon', port: 'rcon', secret: 'PASSWORD' },
  })
  assert.deepEqual(templateFaults(template), [])
  const { quiesce, ports } = resolveLaunch(template, { PASSWORD: 'open', RCON_PORT: 4000 }, SERVER)
  assert.deepEqual(quiesce, { ...QUIESCE, isStill: null, remote: { via: 'rcon', port: 4000, secret: 'open' } })
  assert.deepEqual(ports, [{ name: 'rcon', protocol: 'tcp', port: 4000 }])
})

test('without the password the port of the connection is nobody’s, so a second server with the same one starts', () => {
  const variables: Template['variables'] = [{ name: 'PASSWORD', type: 'secret' }]
  const rcon = { name: 'rcon', protocol: 'tcp' as const, fixed: 25575 }
  const quiesce = { ...QUIESCE, via: 'rcon' as const, port: 'rcon', secret: 'PASSWORD' }
  const args = ['./game', '{{port.rcon}}']
  const template = templateWith({ start: { args }, variables, ports: [rcon], quiesce })
  const launch = resolveLaunch(template, {}, SERVER)
  assert.deepEqual([launch.ports, launch.argv], [[], ['./game', '25575']])
  assert.deepEqual(launch.quiesce?.remote, { via: 'rcon', port: 25575, secret: '' })
  const asked = { ...template, query: { type: 'x', port: 'rcon' } }
  assert.equal(resolveLaunch(asked, {}, SERVER).ports.length, 1, 'it is the port of something else too')
})

test('what a schema cannot say of a template is checked too', () => {
  const cases: [Partial<Template>, string][] = [
    [{ start: { args: ['./game', '{{NOBODY}}'] } }, '/start/args/1 names nothing: {{NOBODY}}'],
    [{ start: { args: ['x'], shellLine: 'y' } }, '/start must have exactly one of args, shellLine'],
    [{ start: { shellLine: 'y' } }, '/start/shellLine runs in a container only: take `process` out of `runtimes`'],
    [{ runtimes: ['container'] }, '/images is required for a container'],
    [{ capabilities: ['KILL', 'SYS_ADMIN'] }, '/capabilities/1 is none of IPC_LOCK, KILL, NET_BIND_SERVICE, SYS_NICE'],
    [{ stop: [{ timeoutSeconds: 1 }] }, '/stop/0 must have exactly one of command, signal'],
    [{ variables: [{ name: 'A', type: 'text', min: 1 }] }, '/variables/0/min is no rule for text'],
    [{ variables: [{ name: 'A', type: 'choice' }] }, '/variables/0/choices is required'],
    [{ variables: [{ name: 'A', type: 'integer', max: 3, default: 4 }] }, '/variables/0/default must be at most 3'],
    [{ query: { type: 'x', port: 'game' } }, '/query/port is no port: game'],
    [{ ports: [{ name: 'a', protocol: 'tcp', variable: 'X' }] }, '/ports/0/variable is no variable: X'],
    [{ install: [{ do: 'download', path: '/x' }] }, '/install/0/url is required to download'],
    [{ quiesce: { ...QUIESCE, port: 'game' } }, '/quiesce/port has no meaning for the console'],
    [{ quiesce: { ...QUIESCE, via: 'rcon' } }, '/quiesce/port must be a port with tcp, for rcon'],
    [
      { quiesce: { ...QUIESCE, via: 'rcon', secret: 'X' } },
      '/quiesce/secret must be a variable of type secret, for rcon',
    ],
    [
      { variables: [{ name: 'A', type: 'text' }], quiesce: { ...QUIESCE, via: 'rcon', secret: 'A' } },
      '/quiesce/secret must be a variable of type secret, for rcon',
    ],
    [{ quiesce: { ...QUIESCE, via: 'management' } }, '/quiesce/before must be a method, a blank and a list in JSON'],
  ]
  for (const [more, fault] of cases) {
    const found = templateFaults(templateWith(more)).map(({ path, message }) => `${path} ${message}`)
    assert.ok(found.includes(fault), `${fault}: ${found.join('; ')}`)
  }
  assert.deepEqual(templateFaults(templateWith({})), [])
})

test('regular expressions of strangers take time that grows with the text, or are none', () => {
  for (const source of ['(a)\\1', '(?=a)', '(?<!a)b', '\\p{L}', 'a{1,5000}', '(a', 'a)', '*', 'x++'])
    assert.equal(compilePattern(source), null, source)
  const patterns = [
    '^[\\w.-]*$',
    '^([\\w\\d._-]+)(\\.jar)$',
    '^(fof)$',
    '^\\w{1,20}$',
    'a|b+c?',
    '^$',
    '[^a-c]x',
    '^a{2,}$',
    '(a|b)*?c',
  ]
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'x', '.', '-', 'j', 'r', ' '), maxLength: 12 })
  fc.assert(
    fc.property(fc.constantFrom(...patterns), text, (source, value) => {
      assert.equal(compilePattern(source)?.test(value), new RegExp(source).test(value), `${source} ${value}`)
    }),
    { numRuns: 500 },
  )
  // Doubles its time with each letter where it is tried one way after the other.
  assert.equal(compilePattern('^(a+)+$')?.test(`${'a'.repeat(1000)}b`), false)
  assert.equal(compilePattern('^(a|a)*(a|a)*$')?.test(`${'a'.repeat(1000)}b`), false)
})

test('hostile texts are refused with a sentence', () => {
  const refused = (text: string, type: 'application/json' | 'application/yaml' = 'application/yaml') => {
    try {
      readTemplate(text, type)
      return 'taken'
    } catch (error) {
      assert.ok(error instanceof UnreadableTemplate, String(error))
      return `${error.faults[0]?.path} ${error.faults[0]?.message}`
    }
  }
  const bomb = ['a: &a [x, x]', 'b: &b [*a, *a]', 'c: [*b, *b]'].join('\n')
  assert.match(refused(bomb), /aliases are not taken/)
  assert.match(refused('{"format": 1, "__proto__": {"isTested": true}}', 'application/json'), /__proto__ is no name/)
  assert.match(refused('format: 1\n__proto__: {x: 1}'), /__proto__ is no name/)
  assert.match(refused('format: 1e999'), /no number/)
  assert.match(refused('{"format": 12345678901234567890}', 'application/json'), /no number/)
  assert.match(refused(`a: ${'['.repeat(5000)}`), /nested too deeply|not valid YAML/)
  assert.match(refused(`{"a": ${'['.repeat(5000)}`, 'application/json'), /nested too deeply/)
  assert.match(refused(`a: [${'x,'.repeat(6000)}x]`), /more than 5000 values/)
  assert.match(refused('? [a, b]\n: c'), /key must be a plain value/)
  const old = readTemplate(
    '%YAML 1.1\n---\nmeta: {version: PLCN_v3}\nname: x\nstartup: ./x\nexported_at: 2001-12-14\n',
    'application/yaml',
  )
  assert.equal(old.template.origin?.exportedAt, '2001-12-14')
  assert.match(refused('- a'), /must be an object/)
  assert.match(refused('format: 1\nformat: 1'), /is there twice/)
  assert.match(refused('x'.repeat(1024 * 1024 + 1)), /larger than 1 MiB/)
  const eggWith = (more: object) => JSON.stringify({ meta: { version: 'PTDL_v2' }, name: 'x', startup: './x', ...more })
  const variables = Array.from({ length: 400 }, (_, index) => ({ env_variable: `V${index}`, rules: 'string' }))
  const { template, report } = readTemplate(eggWith({ variables, name: 'a\u001b[2Jb' }), 'application/json')
  assert.equal(template.variables?.length, 200)
  assert.equal(report.filter(({ message }) => message === 'is one of more than 200').length, 200)
  assert.equal(template.name, 'a [2Jb')
})
