// Whether data is a template: its form by the schema, and its sense by what a schema cannot say. Every fault is named.
import { Ajv, type ValidateFunction } from 'ajv'
import type { FieldFault } from '../contract/errors.ts'
import { GAME_CAPABILITIES } from '../contract/games/capabilities.ts'
import { isRefusedName } from '../contract/games/environment-names.ts'
import { parseManagementCall } from '../contract/games/management-calls.ts'
import { Template, type TemplateVariable } from '../contract/games/template-format.ts'
import { distinctFaults, faultOf, wellFormedRegExp } from '../contract/schema-faults.ts'
import { compilePattern } from './linear-pattern.ts'
import { namesIn, SERVER_FACTS } from './placeholders.ts'
import { checkVariables } from './variables.ts'

const FAULTS_MAX = 50
let validator: ValidateFunction | undefined

/** Compiled on first use: most processes that load this never check one. */
function validate(value: unknown): FieldFault[] {
  validator ??= new Ajv({ allErrors: true, strict: false, verbose: true, code: { regExp: wellFormedRegExp } }).compile(
    Template,
  )
  return validator(value) ? [] : (validator.errors ?? []).map(faultOf)
}

/** No faults: it is a template. */
export function templateFaults(value: unknown): FieldFault[] {
  const faults = validate(value)
  if (faults.length === 0) faults.push(...senseFaults(value as Template))
  return distinctFaults(faults).slice(0, FAULTS_MAX)
}

function senseFaults(template: Template): FieldFault[] {
  return [
    ...duplicates(template),
    ...(template.variables ?? []).flatMap((variable, index) => variableFaults(variable, `/variables/${index}`)),
    ...startFaults(template),
    ...template.stop.flatMap(({ command, signal }, index) => exactlyOne({ command, signal }, `/stop/${index}`)),
    ...capabilityFaults(template),
    ...portFaults(template),
    ...quiesceFaults(template),
    ...installFaults(template),
    ...requirementFaults(template),
    ...patternFaults(template),
    ...placeholderFaults(template),
  ]
}

function exactlyOne(fields: Record<string, unknown>, path: string): FieldFault[] {
  const given = Object.keys(fields).filter((name) => fields[name] !== undefined)
  return given.length === 1 ? [] : [{ path, message: `must have exactly one of ${Object.keys(fields).join(', ')}` }]
}

function duplicates({ variables = [], ports = [] }: Template): FieldFault[] {
  const twice = (names: readonly string[], field: string) =>
    names.flatMap((name, index) =>
      names.indexOf(name) === index ? [] : [{ path: `/${field}/${index}/name`, message: `is there twice: ${name}` }],
    )
  return [
    ...twice(
      variables.map(({ name }) => name),
      'variables',
    ),
    ...twice(
      ports.map(({ name }) => name),
      'ports',
    ),
  ]
}

/** Which rules each type of variable has. */
const RULES: Record<TemplateVariable['type'], readonly string[]> = {
  text: ['minLength', 'maxLength', 'form', 'pattern', 'noneOf'],
  secret: ['minLength', 'maxLength', 'form', 'pattern', 'noneOf'],
  integer: ['min', 'max'],
  number: ['min', 'max'],
  boolean: ['whenTrue', 'whenFalse'],
  choice: ['choices'],
}
const ALL_RULES = new Set(Object.values(RULES).flat())

function variableFaults(variable: TemplateVariable, path: string): FieldFault[] {
  const faults: FieldFault[] = []
  if (variable.name === '__proto__') faults.push({ path: `${path}/name`, message: 'is no name that is taken' })
  for (const rule of Object.keys(variable))
    if (ALL_RULES.has(rule) && !RULES[variable.type].includes(rule))
      faults.push({ path: `${path}/${rule}`, message: `is no rule for ${variable.type}` })
  if (variable.type === 'choice' && variable.choices === undefined)
    faults.push({ path: `${path}/choices`, message: 'is required' })
  if (variable.pattern !== undefined && compilePattern(variable.pattern) === null)
    faults.push({ path: `${path}/pattern`, message: NOT_LINEAR })
  if (faults.length > 0) return faults
  // A default may be missing where a value is required: then the user has to give one.
  const { faults: wrong } = checkVariables([{ ...variable, isRequired: false }], {})
  return wrong.map(({ message }) => ({ path: `${path}/default`, message }))
}

const NOT_LINEAR = 'is no regular expression that is taken: no lookaround, no back references, at most 2,000 characters'

function startFaults({ start, runtimes, images }: Template): FieldFault[] {
  const faults = exactlyOne({ args: start.args, shellLine: start.shellLine }, '/start')
  if (start.shellLine !== undefined && runtimes.includes('process'))
    faults.push({ path: '/start/shellLine', message: 'runs in a container only: take `process` out of `runtimes`' })
  if (typeof start.args?.[0] === 'object') faults.push({ path: '/start/args/0', message: 'must be the program' })
  if (runtimes.includes('container') && images === undefined)
    faults.push({ path: '/images', message: 'is required for a container' })
  for (const name of Object.keys(start.environment ?? {}))
    if (runtimes.includes('process') && isRefusedName(name))
      faults.push({ path: `/start/environment/${name}`, message: 'is not given to a process of the machine' })
  return faults
}

function capabilityFaults({ capabilities = [] }: Template): FieldFault[] {
  return capabilities.flatMap((capability, index) =>
    GAME_CAPABILITIES.includes(capability)
      ? []
      : [{ path: `/capabilities/${index}`, message: `is none of ${GAME_CAPABILITIES.join(', ')}` }],
  )
}

function portFaults({ ports = [], query, variables = [] }: Template): FieldFault[] {
  const faults = ports.flatMap(({ offset, variable, fixed }, index) => {
    const given = [offset, variable, fixed].filter((way) => way !== undefined)
    const path = `/ports/${index}`
    if (given.length > 1) return [{ path, message: 'must have at most one of offset, variable, fixed' }]
    const isKnown = variable === undefined || variables.some(({ name }) => name === variable)
    return isKnown ? [] : [{ path: `${path}/variable`, message: `is no variable: ${variable}` }]
  })
  if (query && !ports.some(({ name }) => name === query.port))
    faults.push({ path: '/query/port', message: `is no port: ${query.port}` })
  return faults
}

function quiesceFaults({ quiesce, ports = [], variables = [] }: Template): FieldFault[] {
  if (!quiesce) return []
  const { via = 'console', port, secret, before, poll, after } = quiesce
  const faults: FieldFault[] = []
  if (via === 'console') {
    for (const [field, value] of Object.entries({ port, secret }))
      if (value !== undefined) faults.push({ path: `/quiesce/${field}`, message: 'has no meaning for the console' })
    return faults
  }
  if (!ports.some(({ name, protocol }) => name === port && protocol === 'tcp'))
    faults.push({ path: '/quiesce/port', message: `must be a port with tcp, for ${via}` })
  if (!variables.some(({ name, type }) => name === secret && type === 'secret'))
    faults.push({ path: '/quiesce/secret', message: `must be a variable of type secret, for ${via}` })
  const commands = { before, poll: poll === undefined ? [] : [poll], after }
  for (const [field, list] of Object.entries(commands))
    if (via === 'management' && !list.every(parseManagementCall))
      faults.push({ path: `/quiesce/${field}`, message: 'must be a method, a blank and a list in JSON' })
  return faults
}

const INSTALL_FIELDS: Record<NonNullable<Template['install']>[number]['do'], readonly string[]> = {
  download: ['url', 'path'],
  unpack: ['path', 'directory'],
  write: ['path', 'text'],
  run: ['args'],
  script: ['image', 'entrypoint', 'text'],
}

function installFaults({ install = [], runtimes }: Template): FieldFault[] {
  return install.flatMap((step, index) => {
    const path = `/install/${index}`
    const needed = INSTALL_FIELDS[step.do]
    const missing = needed.filter((field) => step[field as keyof typeof step] === undefined)
    const others = Object.keys(step).filter((field) => !['do', 'sha256', ...needed].includes(field))
    return [
      ...missing.map((field) => ({ path: `${path}/${field}`, message: `is required to ${step.do}` })),
      ...others.map((field) => ({ path: `${path}/${field}`, message: `has no meaning for ${step.do}` })),
      ...(step.do === 'script' && runtimes.includes('process')
        ? [{ path, message: 'a script runs in a container only: take `process` out of `runtimes`' }]
        : []),
    ]
  })
}

const REQUIREMENT_FIELDS = { file: ['path'], program: ['program'], java: ['version'], line: ['path', 'line'] } as const

function requirementFaults({ requires = [] }: Template): FieldFault[] {
  return requires.flatMap((required, index) =>
    REQUIREMENT_FIELDS[required.kind].flatMap((field) =>
      required[field] === undefined ? [{ path: `/requires/${index}/${field}`, message: 'is required' }] : [],
    ),
  )
}

function patternFaults({ configFiles = [] }: Template): FieldFault[] {
  return configFiles.flatMap(({ settings }, file) =>
    settings.flatMap(({ ifMatches, ifEquals }, index) => {
      const path = `/configFiles/${file}/settings/${index}`
      if (ifMatches === undefined) return []
      if (ifEquals !== undefined) return [{ path, message: 'must have at most one of ifEquals, ifMatches' }]
      return compilePattern(ifMatches) ? [] : [{ path: `${path}/ifMatches`, message: NOT_LINEAR }]
    }),
  )
}

/** Where values are filled in. Elsewhere two braces are two braces. */
function placeholderFaults(template: Template): FieldFault[] {
  const { variables = [], ports = [], start, install = [], configFiles = [], requires = [] } = template
  const known = new Set([
    ...SERVER_FACTS,
    ...variables.map(({ name }) => name),
    ...ports.map(({ name }) => `port.${name}`),
  ])
  const unknown = (text: string, path: string) =>
    namesIn(text).flatMap((name) => (known.has(name) ? [] : [{ path, message: `names nothing: {{${name}}}` }]))
  const faults = (start.args ?? []).flatMap((argument, index) => {
    const path = `/start/args/${index}`
    if (typeof argument === 'string') return unknown(argument, path)
    const condition = known.has(argument.if) ? [] : [{ path: `${path}/if`, message: `names nothing: ${argument.if}` }]
    return [...condition, ...argument.args.flatMap((text, at) => unknown(text, `${path}/args/${at}`))]
  })
  for (const [name, text] of Object.entries(start.environment ?? {}))
    faults.push(...unknown(text, `/start/environment/${name}`))
  for (const [index, step] of install.entries())
    for (const [field, text] of Object.entries({ url: step.url, path: step.path, directory: step.directory }))
      faults.push(...unknown(text ?? '', `/install/${index}/${field}`))
  for (const [index, { path = '', program = '' }] of requires.entries())
    faults.push(...unknown(`${path}\n${program}`, `/requires/${index}`))
  for (const [file, { settings }] of configFiles.entries())
    for (const [index, { key, value }] of settings.entries())
      faults.push(...unknown([...key, value].join('\n'), `/configFiles/${file}/settings/${index}`))
  return faults
}
