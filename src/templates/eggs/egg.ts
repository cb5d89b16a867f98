// A Pterodactyl or Pelican egg as a template. What of it is carried over, changed or dropped is in the report; see ledger.ts
// for why nothing is missing there.
import { TEMPLATE_SCRIPT_MAX_CHARS } from '../../contract/fixed-limits.ts'
import {
  TEMPLATE_FORMAT,
  TEMPLATE_ID_FORM,
  type Template,
  type TemplateVariable,
} from '../../contract/games/template-format.ts'
import type { ReportEntry } from '../../contract/games/templates.ts'
import { boundFault, repeatedKeys } from '../document.ts'
import { JsonFault, type JsonNode, parseJsonText, plainOf } from '../json-text.ts'
import { importConfigFiles } from './egg-config-files.ts'
import { SERVER_ENVIRONMENT } from './egg-placeholders.ts'
import { createEggReader, type EggReader, isRecord } from './egg-reader.ts'
import { importStartup } from './egg-startup.ts'
import { importStop } from './egg-stop.ts'
import { importVariables } from './egg-variables.ts'
import { createLedger } from './ledger.ts'

const VERSION = /^(PTDL|PLCN)_v\d+$/
const KNOWN_VERSIONS = ['PTDL_v1', 'PTDL_v2', 'PLCN_v1', 'PLCN_v2', 'PLCN_v3']
/** Where eggs expect the files of the server. */
const CONTAINER_DIRECTORY = '/home/container'

/** null: it is no egg. */
export function eggVersionOf(value: unknown): string | null {
  const version = isRecord(value) && isRecord(value.meta) ? value.meta.version : undefined
  return typeof version === 'string' && VERSION.test(version) ? version : null
}

export interface EggOptions {
  id?: string | undefined
  takenIds?: readonly string[]
}

export function importEgg(
  value: Record<string, unknown>,
  options: EggOptions,
): { template: Template; report: ReportEntry[] } {
  const { egg: expanded, broken, repeated } = withoutTexts(value)
  const ledger = createLedger(expanded)
  const egg = createEggReader(expanded, ledger)
  for (const { field, message } of broken) ledger.dropped(['config', field], message)
  const variables = importVariables(egg)
  const names = new Set(variables.map(({ name }) => name))
  const canBeEmpty = new Set(
    variables.filter(({ type, isRequired }) => type !== 'boolean' && !isRequired).map(({ name }) => name),
  )
  const start = importStartup(egg, { names, canBeEmpty })
  const configFiles = importConfigFiles(egg, names)
  const images = importImages(egg)
  const install = importInstall(egg)
  const identity = importIdentity(egg, options)
  const isContainer = start?.shellLine !== undefined || install !== null || images.length > 0
  const ready = importReady(egg)
  const template: Template = {
    format: TEMPLATE_FORMAT,
    ...identity,
    runtimes: isContainer ? ['container'] : ['process'],
    ...(images.length > 0 ? { images } : {}),
    containerDirectory: CONTAINER_DIRECTORY,
    ...(variables.length > 0 ? { variables } : {}),
    ...(install === null ? {} : { install: [install] }),
    start: { ...start, environment: environmentOf(variables) },
    ...(ready.length > 0 ? { ready } : {}),
    stop: importStop(egg),
    ports: [
      { name: 'game', protocol: 'tcp' },
      { name: 'game-udp', protocol: 'udp' },
    ],
    ...(configFiles.length > 0 ? { configFiles } : {}),
  }
  return { template, report: [...ledger.report(), ...repeated] }
}

/** Everything is there, as in the containers that eggs are written for: also for the install script. */
function environmentOf(variables: readonly TemplateVariable[]): Record<string, string> {
  const entries = [...Object.entries(SERVER_ENVIRONMENT), ...variables.map(({ name }) => [name, name] as const)]
  return Object.fromEntries(entries.map(([name, value]) => [name, `{{${value}}}`]))
}

interface Expanded {
  egg: Record<string, unknown>
  /** Texts that stay texts. */
  broken: { field: string; message: string }[]
  repeated: ReportEntry[]
}

/** Versions before PLCN_v3 have JSON within texts: what is in there is looked at like everything else. */
function withoutTexts(value: Record<string, unknown>): Expanded {
  const broken: Expanded['broken'] = []
  const repeated: ReportEntry[] = []
  if (!isRecord(value.config)) return { egg: value, broken, repeated }
  const config: Record<string, unknown> = { ...value.config }
  for (const field of ['files', 'startup', 'logs']) {
    const text = config[field]
    if (typeof text !== 'string' || text.trim() === '') continue
    const parsed = parseText(text)
    if (typeof parsed === 'string') {
      broken.push({ field, message: parsed })
      continue
    }
    config[field] = plainOf(parsed)
    for (const { path, message } of repeatedKeys(parsed, () => 1))
      repeated.push({ path: `/config/${field}${path}`, level: 'dropped', message })
  }
  return { egg: { ...value, config }, broken, repeated }
}

/** A sentence where it is nothing that can be read. */
function parseText(text: string): JsonNode | string {
  try {
    const node = parseJsonText(text, false)
    const fault = boundFault(plainOf(node))
    return fault ? `${fault.path} ${fault.message}` : node
  } catch (error) {
    if (error instanceof JsonFault) return 'is a text that is not JSON'
    throw error
  }
}

function importIdentity(egg: EggReader, options: EggOptions): Pick<Template, 'id' | 'name'> & Partial<Template> {
  const { ledger } = egg
  const version = String(egg.value(['meta', 'version']))
  ledger.carried(['meta', 'version'])
  if (!KNOWN_VERSIONS.includes(version)) ledger.changed(['meta', 'version'], `is read as ${KNOWN_VERSIONS.at(-1)}`)
  const name = egg.line(['name'], 191)?.trim() || 'Imported egg'
  const description = egg.prose(['description'], 8000)
  const author = egg.line(['author'], 191)
  const tags = egg.value(['tags'])
  const origin = {
    uuid: egg.line(['uuid'], 191),
    updateUrl: egg.line(['meta', 'update_url'], 2048),
    exportedAt: egg.line(['exported_at'], 64),
  }
  ledger.dropped(['_comment'], 'says where the file comes from, and nothing of the game')
  ledger.dropped(['icon'], 'templates have no icons')
  ledger.dropped(['features'], 'what would keep the game from starting is looked for before each start')
  ledger.dropped(['file_denylist'], 'who may change files is up to tokens')
  ledger.dropped(['config', 'logs'], 'the console is what the game prints')
  return {
    id: idOf(egg, name, options),
    name,
    ...(description ? { description } : {}),
    ...(author ? { author } : {}),
    ...(Array.isArray(tags) ? { tags: importTags(egg, tags) } : {}),
    origin: { kind: 'egg', version, ...Object.fromEntries(Object.entries(origin).filter(([, text]) => text)) },
  }
}

function importTags(egg: EggReader, tags: readonly unknown[]): string[] {
  for (const index of tags.keys()) if (index >= 32) egg.ledger.dropped(['tags', index], 'is one of more than 32')
  return tags.slice(0, 32).flatMap((_, index) => egg.line(['tags', index], 64) ?? [])
}

function idOf({ ledger }: EggReader, name: string, { id, takenIds = [] }: EggOptions): string {
  if (id !== undefined) return id
  const words =
    name
      .normalize('NFKD')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? []
  const slug = words.join('-').slice(0, 55).replace(/-+$/, '')
  const plain = new RegExp(TEMPLATE_ID_FORM).test(slug) ? slug : 'egg'
  if (!takenIds.includes(plain)) return plain
  ledger.changed(['name'], `the id is ${plain}-egg, since ${plain} comes with Gamekeeper`)
  return `${plain}-egg`
}

/** By name, as a list, or the one image of the first version. */
function importImages({ value, ledger }: EggReader): { name: string; image: string }[] {
  const byName = value(['docker_images'])
  const list = value(['images'])
  const found: { path: (string | number)[]; name: string; image: unknown }[] = [
    ...(isRecord(byName)
      ? Object.entries(byName).map(([name, image]) => ({ path: ['docker_images', name], name, image }))
      : []),
    ...(Array.isArray(list)
      ? list.map((image, index) => ({ path: ['images', index], name: String(image), image }))
      : []),
    { path: ['image'], name: String(value(['image'])), image: value(['image']) },
  ]
  const images: { name: string; image: string }[] = []
  for (const { path, name, image } of found) {
    if (image === undefined || image === null || image === '') continue
    const fault = imageFault(name, image, images.length)
    if (fault === null) images.push({ name, image: String(image) })
    if (fault === null) ledger.carried(path)
    else ledger.dropped(path, fault)
  }
  return images
}

function imageFault(name: string, image: unknown, count: number): string | null {
  if (typeof image === 'string' && image.startsWith('data:')) return 'is a picture: templates have none'
  if (typeof image !== 'string' || !/^[\w.:/@~+-]{1,500}$/.test(image)) return 'is no name of an image'
  if (!/^\P{Cc}{1,191}$/u.test(name) || !name.isWellFormed()) return 'has a name that is not taken'
  return count >= 50 ? 'is one of more than 50' : null
}

function importReady({ value, ledger }: EggReader): string[] {
  const done = value(['config', 'startup', 'done'])
  const texts = Array.isArray(done) ? done : [done]
  ledger.dropped(['config', 'startup', 'strip_ansi'], 'lines are compared as the game prints them')
  ledger.dropped(['config', 'startup', 'userInteraction'], 'nothing is asked for at the start')
  return texts.flatMap((text, index) => {
    const path = ['config', 'startup', 'done', ...(Array.isArray(done) ? [index] : [])]
    if (text === undefined || text === null || text === '') return []
    const fault = doneFault(text, index)
    if (fault !== null) {
      ledger.dropped(path, fault)
      return []
    }
    ledger.carried(path)
    if (/\*|\{\w+\}/.test(String(text))) ledger.changed(path, '* and {name} stand for any text')
    return [unanchored(String(text))]
  })
}

/** There a `^` or `$` is a character like any other. */
const unanchored = (text: string) =>
  `${text.startsWith('^') ? '*' : ''}${text}${text.endsWith('$') ? '*' : ''}`.slice(0, 500)

function doneFault(text: unknown, index: number): string | null {
  if (typeof text !== 'string') return 'must be text'
  if (text.startsWith('regex:')) return 'is a regular expression: the game counts as running once it has started'
  if (/[\p{Cc}\u2028\u2029]/u.test(text) || !text.isWellFormed()) return 'is more than one line'
  if (text.length > 500) return 'is longer than 500 characters'
  return index >= 20 ? 'is one of more than 20' : null
}

function importInstall(egg: EggReader): NonNullable<Template['install']>[number] | null {
  const at = (field: string) => ['scripts', 'installation', field]
  const script = egg.value(at('script'))
  if (typeof script !== 'string' || script.trim() === '') return null
  const { ledger } = egg
  const text = script.replaceAll('\r\n', '\n')
  if (text.length > TEMPLATE_SCRIPT_MAX_CHARS) {
    ledger.dropped(['scripts', 'installation'], `has a script of more than ${TEMPLATE_SCRIPT_MAX_CHARS} characters`)
    return null
  }
  if (text === script) ledger.carried(at('script'), 'runs in a container only')
  else ledger.changed(at('script'), 'has other line ends, and runs in a container only')
  const image = egg.line(at('container'), 500)?.trim()
  const entrypoint = egg.line(at('entrypoint'), 191)?.trim()
  return { do: 'script', image: image || 'docker.io/library/debian:stable-slim', entrypoint: entrypoint || 'sh', text }
}
