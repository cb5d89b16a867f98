// flying-squid as its install steps would put it into a server's files, out of the node_modules beside this file: no network is needed.
// Of its data, 430 MB for every version of Minecraft, only those of one version are copied.
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { flyingSquid } from '../../../src/agent/games/templates/flying-squid.ts'

export const SQUID_VERSION = '1.16.1'
export const SQUID_VARIABLES = {
  MINECRAFT_VERSION: SQUID_VERSION,
  ONLINE_MODE: false,
  GENERATION: 'superflat',
  VIEW_DISTANCE: 2,
}

const ROOT = fileURLToPath(new URL('.', import.meta.url))
const DATA = 'node_modules/minecraft-data/minecraft-data/data'

export function putFlyingSquid(filesFolder: string): void {
  for (const path of packagesOf('flying-squid')) {
    const name = relative(ROOT, path)
    cpSync(path, join(filesFolder, name), { recursive: true, filter: (source) => isNeeded(relative(ROOT, source)) })
  }
  for (const step of flyingSquid.install ?? [])
    if (step.do === 'write') writeFileSync(join(filesFolder, step.path ?? ''), step.text ?? '')
}

/** With everything that it depends on. */
function packagesOf(name: string): Set<string> {
  const found = new Set<string>()
  const visit = (each: string, from: string) => {
    const path = resolvePackage(each, from)
    if (path === undefined || found.has(path)) return
    found.add(path)
    const { dependencies = {} } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
    for (const dependency of Object.keys(dependencies)) visit(dependency, path)
  }
  visit(name, ROOT)
  return found
}

function resolvePackage(name: string, from: string): string | undefined {
  for (let folder = from; join(folder, '/').startsWith(ROOT); folder = dirname(folder)) {
    const path = join(folder, 'node_modules', name)
    if (existsSync(join(path, 'package.json'))) return path
  }
  return undefined
}

const UNUSED = /(?:\/(?:test|tests|docs|example|examples)$|\.map$|\.md$)/

function isNeeded(path: string): boolean {
  if (path.startsWith(`${DATA}/`))
    return neededData().some((folder) => path.startsWith(folder) || folder.startsWith(path))
  return !UNUSED.test(path)
}

let data: string[] | undefined
function neededData(): string[] {
  if (data) return data
  const paths = JSON.parse(readFileSync(join(ROOT, DATA, 'dataPaths.json'), 'utf8'))
  const folders = Object.values(paths.pc[SQUID_VERSION] as Record<string, string>)
  data = ['dataPaths.json', 'pc/common', 'bedrock/common', ...folders].map((path) => join(DATA, path))
  return data
}
