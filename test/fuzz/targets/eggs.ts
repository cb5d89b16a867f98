// Eggs and templates as people send them, in JSON and YAML. Whatever comes is refused with its faults and their lines, or becomes a
// template that is one, that stays the same when it is read again, and with nothing of the egg missing in the report.
import assert from 'node:assert/strict'
import { stringify } from 'yaml'
import { isFailure } from '../../../src/contract/errors.ts'
import { templateFaults } from '../../../src/templates/check.ts'
import { readDocument } from '../../../src/templates/document.ts'
import { eggVersionOf } from '../../../src/templates/eggs/egg.ts'
import { EGGS, PLCN_V3, PTDL_V1 } from '../../../src/templates/eggs/eggs.testing.ts'
import { mediaTypeOf, type ReadTemplate, readTemplate, UnreadableTemplate } from '../../../src/templates/read.ts'
import { resolveLaunch } from '../../../src/templates/resolve.ts'
import type { Random } from '../../faults/history/random.ts'

/** What takes more than it may shows in a short text too, and many more of them are tried. */
const INPUT_MAX_BYTES = 16 * 1024
const SERVER = { id: 'srv_1', name: 'Castle', port: 4000, memoryBytes: 1024 ** 3 }

export const covers = ['/src/templates/']
/** Of the machine that runs all else at the same time. The service does it in a thread that it ends. */
export const maxCpuMs = 2000

export const dictionary = [
  ...['{{SERVER_PORT}}', '{{server.build.default.port}}', '{{env.X}}', '$X', '$(id)', '`id`', '|', '&&', ';', '"', "'"],
  ...[
    '^^C',
    '^C',
    'PTDL_v2',
    'PLCN_v3',
    'required|string|max:20',
    'regex:/^(a+)+$/',
    'in:a,b',
    'between:1,5',
    'nullable',
  ],
  ...[
    '"parser": "properties"',
    '"find": {"*.a": "b"}',
    '*',
    '&a',
    '*a',
    '<<: *a',
    '!!js/function',
    '- - - -',
    '__proto__',
  ],
  ...['\\u0000', '1e999', '-0', '\u2028', '\ud83d', '0777', 'yes', '~', '"config": {"files": "{}"}', 'update_url'],
]

export const seeds = () => [
  ...Object.values(EGGS).map((egg) => Buffer.from(JSON.stringify(egg))),
  ...[PTDL_V1, PLCN_V3].map((egg) => Buffer.from(stringify(egg))),
  Buffer.from(JSON.stringify(readTemplate(JSON.stringify(PTDL_V1), 'application/json').template)),
  Buffer.from('meta: {version: PTDL_v2}\nname: [x]\nvariables: {a: 1}\nconfig: {files: "{", startup: "[]"}\n'),
]

/** Whole values doubled, and put where others were. */
export function mutate(input: Buffer, random: Random): Buffer {
  const text = input.toString('latin1')
  const parts = text.split(/(?<=[,\n{}[\]])/)
  const at = random.int(parts.length)
  const taken = parts[random.int(parts.length)] ?? ''
  if (random.int(2) === 0) parts.splice(at, 1, taken)
  else parts.splice(at, 0, taken)
  return Buffer.from(parts.join(''), 'latin1')
}

export function run(input: Buffer): void {
  const text = input.subarray(0, INPUT_MAX_BYTES).toString()
  const type = mediaTypeOf(text)
  let found: ReadTemplate
  try {
    found = readTemplate(text, type)
  } catch (error) {
    if (!(error instanceof UnreadableTemplate)) throw error
    assert.ok(error.faults.length > 0)
    for (const { line, message } of error.faults) assert.ok(line >= 1 && message !== '', message)
    return
  }
  assertSound(found, readDocument(text, type).value)
}

function assertSound({ template, report, lines }: ReadTemplate, value: unknown): void {
  assert.deepEqual(templateFaults(template), [])
  assert.equal(lines.length, report.length)
  const again = readTemplate(JSON.stringify(template), 'application/json')
  assert.deepEqual(again.template, JSON.parse(JSON.stringify(template)), 'it is another one when it is read again')
  if (eggVersionOf(value) !== null) assertReported(value, new Set(report.map(({ path }) => path)))
  try {
    const { argv, shellLine, container } = resolveLaunch(template, {}, SERVER)
    assert.ok(argv.length > 0)
    if (shellLine !== null) assert.notEqual(container, null, 'a line for a shell outside of a container')
  } catch (error) {
    if (!isFailure(error, 'invalid_request') && !isFailure(error, 'not_startable')) throw error
  }
}

/** Every field of the egg, or what it belongs to, or something in it. */
function assertReported(egg: unknown, paths: ReadonlySet<string>): void {
  for (const [name, value] of Object.entries(egg as object)) {
    const isEmpty = value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)
    const path = `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    const isSaid = paths.has(path) || [...paths].some((each) => each.startsWith(`${path}/`))
    assert.ok(isEmpty || isSaid || paths.has(''), `nothing is said of ${path}`)
  }
}
