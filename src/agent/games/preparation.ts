// What a game finds among its files when it starts: config files filled in as its template says, and what the template asks for.
import { buffer } from 'node:stream/consumers'
import { fail, isFailure } from '../../contract/errors.ts'
import { CONFIG_FILE_MAX_BYTES } from '../../contract/fixed-limits.ts'
import type { Launch, LaunchConfigFile, LaunchRequirement } from '../../contract/games/launch.ts'
import { type ConfigFiller, createConfigFiller } from '../../templates/config-files/config-filler.ts'
import { ConfigFault } from '../../templates/config-files/fill.ts'
import { BY_THE_SYSTEM } from '../files/changes/changes.ts'
import { type Content, openContent, streamContent, writeContent } from '../files/content.ts'
import type { ServerFiles } from '../files/server-files.ts'

/** Somebody else may write the file at the same moment. */
const ATTEMPTS = 3

export type Prepare = (server: ServerFiles, launch: Launch) => Promise<void>

export function createPreparation(): Prepare {
  const filling = { filler: createConfigFiller(), filled: createFilled() }
  return async (server, { configFiles, requires }) => {
    for (const file of configFiles) await fillIn(server, filling, file)
    for (const required of requires) await requireOfFiles(server, required)
  }
}

interface Filling {
  filler: ConfigFiller
  filled: Filled
}

/** Which files were found to be as they have to be: as long as nothing touches them, they are. */
interface Filled {
  has(server: ServerFiles, file: LaunchConfigFile, found: Content): boolean
  add(server: ServerFiles, file: LaunchConfigFile, found: Content): void
}

const FILLED_MAX = 1000

function createFilled(): Filled {
  const known = new Map<string, string>()
  const keyOf = ({ serverId }: ServerFiles, { path }: LaunchConfigFile) => `${serverId} ${path}`
  const stateOf = ({ format, settings }: LaunchConfigFile, { etag, file }: Content) =>
    JSON.stringify([etag, String(file.stats.ctimeNs), format, settings])
  return {
    has: (server, file, found) => known.get(keyOf(server, file)) === stateOf(file, found),
    add(server, file, found) {
      const [oldest] = known.keys()
      if (known.size === FILLED_MAX && oldest !== undefined) known.delete(oldest)
      known.set(keyOf(server, file), stateOf(file, found))
    },
  }
}

async function fillIn(server: ServerFiles, filling: Filling, file: LaunchConfigFile): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await fillInOnce(server, filling, file)
    } catch (error) {
      const isOvertaken = isFailure(error, 'precondition_failed') || isFailure(error, 'already_exists')
      if (!isOvertaken || attempt === ATTEMPTS) throw error
    }
  }
}

async function fillInOnce(server: ServerFiles, { filler, filled }: Filling, file: LaunchConfigFile): Promise<void> {
  const { path, format, settings } = file
  const found = openIfThere(server, path)
  using _file = found?.file
  // What a plain text would have to say is not known.
  if (!found && format === 'text') return
  if (found && filled.has(server, file, found)) return
  const before = found && (await textOf(found, path))
  const text = await filler.fill({ format, settings, text: before ?? '' }).catch((error: unknown) => {
    if (!(error instanceof ConfigFault)) throw error
    throw cannotFill(path, error.message)
  })
  if (found && text === before) return filled.add(server, file, found)
  const source = (async function* () {
    yield Buffer.from(text)
  })()
  await writeContent(server, path, source, {
    ...(found ? { ifMatch: found.etag } : { overwrite: false }),
    change: { kind: 'file.written', requestId: null, origin: BY_THE_SYSTEM },
  })
}

const cannotFill = (path: string, why: string) =>
  fail('not_startable', `${path} cannot be filled in: ${why}. Correct the file or delete it, then start again.`)

async function readText(server: ServerFiles, path: string): Promise<string | undefined> {
  const content = openIfThere(server, path)
  using _file = content?.file
  return content && textOf(content, path)
}

async function textOf(content: Content, path: string): Promise<string> {
  if (content.sizeBytes > CONFIG_FILE_MAX_BYTES)
    throw cannotFill(path, `it is larger than ${CONFIG_FILE_MAX_BYTES} bytes`)
  const bytes = await buffer(streamContent(content.file, { start: 0, end: CONFIG_FILE_MAX_BYTES - 1 }))
  try {
    // The mark at its beginning is part of it.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw cannotFill(path, 'it is not UTF-8')
  }
}

function openIfThere(server: ServerFiles, path: string) {
  try {
    return openContent(server, path)
  } catch (error) {
    if (isFailure(error, 'not_found')) return undefined
    throw error
  }
}

/** Programs are the runtime's to look for: a container has its own. */
async function requireOfFiles(server: ServerFiles, required: LaunchRequirement): Promise<void> {
  const { kind, path = '/', line, hint } = required
  if (kind === 'file' && !hasFile(server, path)) throw fail('not_startable', `The file ${path} is missing. ${hint}`)
  if (kind === 'line' && !(await hasLine(server, path, line)))
    throw fail('not_startable', `The file ${path} does not have the line ${line}. ${hint}`)
}

function hasFile(server: ServerFiles, path: string): boolean {
  using file = openIfThere(server, path)?.file
  return file !== undefined
}

async function hasLine(server: ServerFiles, path: string, line: string | undefined): Promise<boolean> {
  const lines = (await readText(server, path))?.split(/\r?\n/) ?? []
  return lines.some((each) => each.trim() === line)
}
