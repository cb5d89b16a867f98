// From a template, the values of its variables and what is known of the server to what a runtime needs. Pure: the same
// gives the same, and nothing is read.
import { type FieldFault, fail } from '../contract/errors.ts'
import type {
  Launch,
  LaunchContainer,
  LaunchInstallStep,
  LaunchPort,
  LaunchSetting,
  Quiesce,
  StopStep,
} from '../contract/games/launch.ts'
import type { RuntimeChoice } from '../contract/games/runtime-choice.ts'
import type { Template } from '../contract/games/template-format.ts'
import { fillPlaceholders, soleNameIn } from './placeholders.ts'
import { checkVariables, type VariableValue, type VariableValues } from './variables.ts'

export interface ServerFacts {
  id: string
  name: string
  /** null: the default of the template. */
  port: number | null
  /** null: no limit. */
  memoryBytes: number | null
  /** What the game listens on; everything by default. */
  address?: string
  /** As the server's owner chose; what the template allows by default. */
  runtime?: RuntimeChoice | null
}

export interface ResolvedTemplate {
  launch: Launch
  install: readonly LaunchInstallStep[]
  /** For backups of a server that has no patterns of its own. */
  ignored: string
}

const MIB = 1024 * 1024
/** Where a container sees the files of a server without a template that says otherwise. */
export const CONTAINER_DIRECTORY = '/data'
/** A heap as large as the limit is killed by the kernel: the machine itself needs some of it. */
const HEAP_SHARE = 0.75
const HEAP_SPARED_MIB = 512
const HEAP_MIN_MIB = 128

export function resolveLaunch(template: Template, values: VariableValues, server: ServerFacts): Launch {
  return resolveTemplate(template, values, server).launch
}

/** Throws `invalid_request` with the path of every variable that is missing or wrong. */
export function resolveTemplate(template: Template, values: VariableValues, server: ServerFacts): ResolvedTemplate {
  const { faults, texts, values: typed } = checkVariables(template.variables ?? [], values)
  const port = server.port ?? template.defaultPort ?? null
  if (port === null && needsPort(template)) faults.push({ path: '/port', message: 'is required by the template' })
  const ports = resolvePorts(template, typed, port, faults)
  if (faults.length > 0) throw invalidVariables(faults)
  const facts: Record<string, VariableValue> = { ...typed, ...factsOf(server, port, ports) }
  const written: Record<string, string> = { ...texts }
  for (const [name, value] of Object.entries(facts)) written[name] ??= String(value)
  const fill = (text: string) => fillPlaceholders(text, (name) => written[name] ?? '')
  return {
    launch: launchOf(template, { fill, facts, ports, container: containerOf(template, server.runtime ?? null) }),
    install: (template.install ?? []).map((step) => installStep(step, fill)),
    ignored: (template.ignored ?? []).join('\n'),
  }
}

function invalidVariables(errors: FieldFault[]) {
  const names = errors.map(({ path, message }) => `${path.slice(1)} ${message}`)
  return fail('invalid_request', { detail: `The template cannot be used: ${names.slice(0, 5).join('; ')}.`, errors })
}

/** A port that is counted from the server's own needs that. */
const needsPort = ({ ports = [] }: Template) =>
  ports.some(({ variable, fixed }) => variable === undefined && fixed === undefined)

function resolvePorts(
  { ports = [] }: Template,
  values: Record<string, VariableValue>,
  serverPort: number | null,
  faults: FieldFault[],
): LaunchPort[] {
  return ports.map(({ name, protocol, offset = 0, variable, fixed }) => {
    const port = variable === undefined ? (fixed ?? (serverPort ?? 1) + offset) : Number(values[variable])
    if (Number.isInteger(port) && port >= 1 && port <= 65535) return { name, protocol, port }
    const path = variable === undefined ? '/port' : `/variables/${variable}`
    faults.push({ path, message: `gives no port for ${name}: it must be a number from 1 to 65535` })
    return { name, protocol, port: 1 }
  })
}

function factsOf(server: ServerFacts, port: number | null, ports: readonly LaunchPort[]) {
  const memoryMiB = server.memoryBytes === null ? 0 : Math.floor(server.memoryBytes / MIB)
  const heapMiB = Math.max(HEAP_MIN_MIB, Math.floor(Math.min(memoryMiB * HEAP_SHARE, memoryMiB - HEAP_SPARED_MIB)))
  return {
    'server.id': server.id,
    // One line, whatever a name may have in it.
    'server.name': server.name.replace(/[\p{Cc}\u2028\u2029]/gu, ' '),
    'server.address': server.address ?? '0.0.0.0',
    'server.port': port ?? '',
    'server.memoryMiB': memoryMiB,
    'server.heapMiB': memoryMiB === 0 ? 0 : heapMiB,
    ...Object.fromEntries(ports.map(({ name, port: number }) => [`port.${name}`, number])),
  }
}

interface Filling {
  fill(text: string): string
  facts: Record<string, VariableValue>
  ports: readonly LaunchPort[]
  container: LaunchContainer | null
}

/** A process where the template allows it: it needs nothing that a machine may lack. */
export const defaultKind = ({ runtimes }: Template): RuntimeChoice['kind'] =>
  runtimes.includes('process') ? 'process' : 'container'

/** The template may have changed since the choice was made. */
function containerOf(template: Template, choice: RuntimeChoice | null): LaunchContainer | null {
  const kind = choice?.kind ?? defaultKind(template)
  if (!template.runtimes.includes(kind))
    throw fail('not_startable', `The template does not run as a ${kind}. Change the \`runtime\` of the server.`)
  const image = choice?.image ?? template.images?.[0]?.image
  if (kind === 'process') return null
  if (image === undefined) throw fail('not_startable', 'The template names no image for a container.')
  const { containerDirectory: directory = CONTAINER_DIRECTORY, capabilities = [] } = template
  return { image, directory, capabilities, installer: null }
}

function launchOf(template: Template, { fill, facts, ports, container }: Filling): Launch {
  const { start, query } = template
  const quiesce = template.quiesce ? quiesceOf(template.quiesce, ports, facts) : null
  return {
    templateId: template.id,
    argv: argvOf(start, fill, facts),
    shellLine: start.shellLine ?? null,
    environment: Object.fromEntries(
      Object.entries(start.environment ?? {}).map(([name, text]) => [name, fill(text)] as const),
    ),
    workingDirectory: start.directory ?? '/',
    ready: template.ready ?? [],
    stop: template.stop.map((step) => stopStep(step)),
    stopsByItself: template.stopsByItself ?? [],
    joins: template.joins ?? [],
    leaves: template.leaves ?? [],
    // Without its secret nobody uses that connection: its port, the same for many servers by default, is not theirs.
    ports: ports.filter(({ name }) => !isUnused(name, template, quiesce)),
    query: query ?? null,
    quiesce,
    container,
    configFiles: (template.configFiles ?? []).map((file) => ({ ...file, settings: settingsOf(file, facts, fill) })),
    requires: (template.requires ?? []).map(({ path, program, ...required }) => ({
      ...required,
      ...(path === undefined ? {} : { path: fill(path) }),
      ...(program === undefined ? {} : { program: fill(program) }),
    })),
  }
}

function quiesceOf(
  { via = 'console', port, secret = '', ...quiesce }: NonNullable<Template['quiesce']>,
  ports: readonly LaunchPort[],
  facts: Record<string, VariableValue>,
): Quiesce {
  const remotePort = ports.find(({ name }) => name === port)?.port
  const isRemote = via !== 'console' && remotePort !== undefined
  const remote = isRemote ? { via, port: remotePort, secret: String(facts[secret] ?? '') } : null
  return { ...quiesce, isStill: quiesce.isStill ?? null, remote }
}

const isUnused = (port: string, { query, quiesce }: Template, resolved: Quiesce | null) =>
  resolved?.remote?.secret === '' && port === quiesce?.port && port !== query?.port

/** The line of a shell holds no values: they are in its environment. */
function argvOf(
  { args = [], shellLine, shell = 'sh' }: Template['start'],
  fill: Filling['fill'],
  facts: Record<string, VariableValue>,
): [string, ...string[]] {
  if (shellLine !== undefined) return [shell, '-c', shellLine]
  const filled = args.flatMap((argument) => {
    if (typeof argument === 'string') return [fill(argument)]
    return isAbsent(argument.if, facts[argument.if]) ? [] : argument.args.map(fill)
  })
  const [program = ''] = filled
  if (program === '') throw invalidVariables([{ path: '/start/args/0', message: 'is empty: there is no program' }])
  return filled as [string, ...string[]]
}

/** Zero is a value like any other, but for the memory of a server without a limit. */
const isAbsent = (name: string, value: VariableValue | undefined) =>
  value === undefined || value === '' || value === false || (value === 0 && name.startsWith('server.'))

function stopStep({ command, signal = 'SIGTERM', timeoutSeconds, message }: Template['stop'][number]): StopStep {
  const common = { timeoutSeconds, message: message ?? null }
  return command === undefined ? { ...common, signal } : { ...common, command }
}

/** A value that is one placeholder keeps its type; within more text it is text. */
function settingsOf(
  { settings }: NonNullable<Template['configFiles']>[number],
  facts: Record<string, VariableValue>,
  fill: Filling['fill'],
): LaunchSetting[] {
  return settings.map(({ key, value, isNumeric = false, ifEquals, ifMatches }) => {
    const name = typeof value === 'string' ? soleNameIn(value) : null
    const filled =
      typeof value !== 'string' ? value : name === null ? fill(value) : typedValue(name, value, facts, fill)
    return {
      key: key.map(fill),
      value: isNumeric && typeof filled === 'string' && /^-?\d{1,15}$/.test(filled) ? Number(filled) : filled,
      ...(ifEquals === undefined ? {} : { ifEquals }),
      ...(ifMatches === undefined ? {} : { ifMatches }),
    }
  })
}

/** A variable that writes true in a way of its own is meant to be written so. */
function typedValue(name: string, text: string, facts: Record<string, VariableValue>, fill: Filling['fill']) {
  const value = facts[name] ?? ''
  return typeof value === 'boolean' && fill(text) !== String(value) ? fill(text) : value
}

/** What a step must have is checked with the template. */
function installStep(step: NonNullable<Template['install']>[number], fill: Filling['fill']): LaunchInstallStep {
  const path = fill(step.path ?? '/')
  switch (step.do) {
    case 'download':
      return { do: 'download', url: fill(step.url ?? ''), sha256: step.sha256 ?? null, path }
    case 'unpack':
      return { do: 'unpack', path, directory: fill(step.directory ?? '/') }
    case 'write':
      return { do: 'write', path, text: step.text ?? '' }
    case 'run':
      return { do: 'run', args: (step.args ?? []).map(fill) as [string, ...string[]] }
    case 'script':
      return { do: 'script', image: step.image ?? '', entrypoint: step.entrypoint ?? 'sh', text: step.text ?? '' }
  }
}
