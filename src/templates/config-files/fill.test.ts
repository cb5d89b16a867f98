import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { parse as parseYaml } from 'yaml'
import { createConfigFiller } from './config-filler.ts'
import { ConfigFault, type ConfigSetting, fillConfig } from './fill.ts'

const set = (key: string, value: ConfigSetting['value'], more: Partial<ConfigSetting> = {}): ConfigSetting => ({
  key: key.split('.'),
  value,
  ...more,
})

describe('config files are filled in, and everything that no setting names stays as it is', () => {
  test('properties', () => {
    const before = '# Minecraft\r\nserver-port=25565\r\nmotd = Old\\\r\n    world\r\n! note\r\nlevel-name:world\r\n'
    const filled = fillConfig('properties', before, [
      set('server-port', 4000),
      { key: ['motd'], value: 'Grüße \\o/ = fine' },
      set('new', true),
    ])
    assert.equal(
      filled,
      '# Minecraft\r\nserver-port=4000\r\nmotd = Gr\\u00fc\\u00dfe \\\\o/ = fine\r\n! note\r\nlevel-name:world\r\nnew=true\r\n',
    )
    assert.equal(fillConfig('properties', '', [set('eula', true)]), 'eula=true\n')
  })

  test('JSON, with comments, numbers too large for JavaScript and its own indentation', () => {
    const before = '{\n\t// The owner\n\t"owner": 76561198000000001,\n\t"net": { "port": 1, "hosts": ["a", "b"] },\n}\n'
    const settings = [set('net.port', 4000), set('net.name', 'x'), set('game.max.players', 8), set('net.hosts.1', 'c')]
    assert.equal(
      fillConfig('json', before, settings),
      '{\n\t// The owner\n\t"owner": 76561198000000001,\n\t"net": { "port": 4000, "hosts": ["a", "c"], "name": "x" },\n' +
        '\t"game": {\n\t  "max": {\n\t    "players": 8\n\t  }\n\t},\n}\n',
    )
    assert.deepEqual(JSON.parse(fillConfig('json', '', settings.slice(0, 2))), { net: { port: 4000, name: 'x' } })
    assert.throws(() => fillConfig('json', '{"net": 1}', [set('net.port', 1)]), ConfigFault)
    assert.throws(() => fillConfig('json', '{', [set('a', 1)]), ConfigFault)
  })

  test('YAML keeps comments and order', () => {
    const before =
      '# Top\nb: 1 # one\na:\n  # inner\n  port: "25565"\nservers:\n  one: { address: x }\n  two: { address: y }\n'
    const filled = fillConfig('yaml', before, [set('a.port', 4000), set('servers.*.address', 'z'), set('c.d', 'yes')])
    assert.match(filled, /^# Top\nb: 1 # one\na:\n {2}# inner\n {2}port: 4000\n/)
    assert.deepEqual(parseYaml(filled), {
      b: 1,
      a: { port: 4000 },
      servers: { one: { address: 'z' }, two: { address: 'z' } },
      c: { d: 'yes' },
    })
    const odd =
      'owner: 76561198000000001\nmode: 0755\nversion: 1.10\nempty:\ntilde: ~\nyes: on\ntext: "x" # c\nlist: [1, 007]\n'
    assert.equal(
      fillConfig('yaml', odd, [set('text', 'y z')]),
      odd.replace('"x"', 'y z').replace('[1, 007]', '[ 1, 007 ]'),
    )
    assert.equal(fillConfig('yaml', 'a:\n', [set('a.b', 'on')]), 'a:\n  b: "on"\n')
    assert.equal(fillConfig('yaml', before, [set('b', 1)]), before)
    assert.deepEqual(parseYaml(fillConfig('yaml', '', [set('a.b', 1)])), { a: { b: 1 } })
  })

  test('TOML', () => {
    const before =
      'title = "x" # the title\ntext = """\nport = 1\n"""\nlist = [ "port = 2", # c\n 3 ]\n\n[net]\nport = 3 # here\n\n[[mods]]\nname = "a"\n'
    const settings = [
      set('net.port', 4000),
      set('net.host', 'h'),
      set('top', true),
      set('a.b', 1.5),
      set('mods.0.name', 'b'),
    ]
    assert.equal(
      fillConfig('toml', before, settings),
      'title = "x" # the title\ntext = """\nport = 1\n"""\nlist = [ "port = 2", # c\n 3 ]\ntop = true\n\n' +
        '[net]\nport = 4000 # here\nhost = "h"\n\n[[mods]]\nname = "b"\n\n[a]\nb = 1.5\n',
    )
    assert.equal(fillConfig('toml', '', [set('port', 1)]), 'port = 1\n')
    assert.throws(() => fillConfig('toml', 'a = "x', [set('a', 1)]), ConfigFault)
  })

  test('INI', () => {
    const before = '; top\nplain=1\n\n[net]\nport = 1\n; port = 2\n\n[other]\nport=3\n'
    const settings = [set('net.port', 4000), set('net.name', 'x y'), set('plain', 2), set('new.key', 'v')]
    assert.equal(
      fillConfig('ini', before, settings),
      '; top\nplain=2\n\n[net]\nport = 4000\n; port = 2\nname=x y\n\n[other]\nport=3\n\n[new]\nkey=v\n',
    )
    assert.equal(fillConfig('ini', '', [set('a', 1)]), 'a=1\n')
  })

  test('XML', () => {
    const before =
      '<?xml version="1.0"?>\n<!-- <port>1</port> -->\n<server>\n  <port>1</port>\n  <name a="b">x &amp; y</name>\n' +
      "  <property name='Port' value='1'/>\n  <empty/>\n</server>\n"
    const filled = fillConfig('xml', before, [
      set('server.port', 4000),
      set('server.name', 'a < b & "c"'),
      { key: ['server', "property[@name='Port']", '@value'], value: 4000 },
      { key: ['server', "property[@name='New']", '@value'], value: 'n' },
      set('server.empty', 'full'),
      set('server.new.deep', 'd'),
    ])
    assert.equal(
      filled,
      '<?xml version="1.0"?>\n<!-- <port>1</port> -->\n<server>\n  <port>4000</port>\n' +
        '  <name a="b">a &lt; b &amp; &quot;c&quot;</name>\n  <property name=\'Port\' value="4000"/>\n  <empty>full</empty>\n' +
        '  <property name="New" value="n"/>\n  <new>\n    <deep>d</deep>\n  </new>\n</server>\n',
    )
    assert.equal(fillConfig('xml', '', [set('a.b', 1)]), '<a>\n  <b>1</b>\n</a>\n')
    assert.throws(() => fillConfig('xml', '<a><b></a>', [set('a.b', 1)]), ConfigFault)
  })

  test('plain text, by how a line begins', () => {
    const before = 'hostname "old"\n// hostname\nmap a\n'
    assert.equal(
      fillConfig('text', before, [{ key: ['hostname '], value: 'hostname "new"' }]),
      'hostname "new"\n// hostname\nmap a\n',
    )
  })
})

test('a setting with a condition replaces what fits, and adds nothing', () => {
  for (const [format, text] of [
    ['json', '{"a": {"x": "old", "y": "other"}}'],
    ['yaml', 'a:\n  x: old\n  y: other\n'],
    ['toml', '[a]\nx = "old"\ny = "other"\n'],
    ['ini', '[a]\nx=old\ny=other\n'],
    ['xml', '<a><x>old</x><y>other</y></a>'],
  ] as const) {
    const settings = [
      set('a.x', 'new', { ifEquals: 'old' }),
      set('a.y', 'new', { ifMatches: '^(none|of)$' }),
      set('a.z', 'new', { ifEquals: '' }),
    ]
    assert.equal(fillConfig(format, text, settings), text.replace('old', 'new'), format)
  }
})

test('whatever a value is, it is read back as it was and touches nothing else', () => {
  const value = fc.string({ unit: 'grapheme', maxLength: 30 }).filter((text) => !/[\p{Cc}\u2028\u2029]/u.test(text))
  fc.assert(
    fc.property(value, (text) => {
      const settings = [set('a.b', text)]
      assert.deepEqual(JSON.parse(fillConfig('json', '{"a": {"c": 1}}', settings)), { a: { c: 1, b: text } })
      assert.deepEqual(parseYaml(fillConfig('yaml', 'a: {c: 1}\n', settings)), { a: { c: 1, b: text } })
      // Again with the same: nothing is left to do.
      for (const [format, before] of [
        ['properties', 'c=1\n'],
        ['toml', '[a]\nc = 1\n'],
        ['xml', '<a><c>1</c></a>'],
      ] as const) {
        const wanted = format === 'properties' ? [set('b', text)] : settings
        const once = fillConfig(format, before, wanted)
        assert.equal(fillConfig(format, once, wanted), once, format)
        assert.match(once, /c\s?(=|>)\s?1/)
      }
    }),
    { numRuns: 200 },
  )
})

test('a large file is filled in by a thread, with the same result and the same faults', async () => {
  const filler = createConfigFiller()
  const text = Array.from({ length: 3000 }, (_, index) => `key${index}=v`).join('\n')
  const order = {
    format: 'properties',
    text,
    settings: [set('key7', 'new'), set('key8', 'new'), set('other', 1)],
  } as const
  assert.equal(await filler.fill(order), fillConfig(order.format, text, order.settings))
  const broken = { format: 'json', text: `{"a": ${'['.repeat(70_000)}`, settings: [set('a', 1)] } as const
  await assert.rejects(filler.fill(broken), ConfigFault)
  await assert.rejects(filler.fill({ ...broken, text: '{' }), ConfigFault)
})
