// `npm ci` and `npm pack` run this: builds the panel into panel/dist and compresses it once, so that no request has to. In a
// checkout without the panel's sources, and where only the service's own dependencies are installed, there is nothing to do;
// neither is there where nothing that it is made of has changed since.
import { createHash } from 'node:crypto'
import { existsSync, globSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PANEL = join(ROOT, 'panel')
const DIST = join(PANEL, 'dist')
/** The digest of what `panel/dist` was made of. Beside it, as everything within is served. */
const BUILT_OF = join(PANEL, '.built-of')
const SOURCES = ['package.json', 'package-lock.json', 'scripts/build-panel.ts', 'panel/**', 'src/{sdk,contract}/**']
const NOT_SOURCES = ['panel/dist', 'panel/.built-of', '**/*.test.ts']
const COMPRESSIBLE = new Set(['.css', '.html', '.js', '.json', '.svg', '.txt', '.wasm', '.webmanifest'])
/** Below this a packet is not saved. */
const WORTH_IT_BYTES = 1024
/** The best one saves another 4 % and takes longer than all the rest of the build. */
const BROTLI_QUALITY = 9

interface Vite {
  build(options: { root: string; configFile: string; logLevel: 'warn' }): Promise<unknown>
}

async function loadVite(): Promise<Vite | null> {
  const name = 'vite'
  try {
    return (await import(name)) as Vite
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return null
    throw error
  }
}

function digestOfSources(): string {
  const digest = createHash('sha256')
  const found = globSync(SOURCES, { cwd: ROOT, exclude: NOT_SOURCES, withFileTypes: true })
  const paths = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  for (const path of paths.sort()) {
    const bytes = readFileSync(path)
    digest.update(`${path.slice(ROOT.length)}\n${bytes.length}\n`).update(bytes)
  }
  return digest.digest('hex')
}

/** Whether `panel/dist` is made of the sources as they are now. */
export function isPanelBuilt(digest = digestOfSources()): boolean {
  return (
    existsSync(join(DIST, 'index.html')) && existsSync(BUILT_OF) && readFileSync(BUILT_OF, 'utf8').trim() === digest
  )
}

/** Beside each file, where it saves something. */
export function compressFiles(directory: string): void {
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !COMPRESSIBLE.has(extname(entry.name))) continue
    const path = join(entry.parentPath, entry.name)
    const bytes = readFileSync(path)
    if (bytes.length < WORTH_IT_BYTES) continue
    const params = {
      [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    }
    for (const [suffix, packed] of [
      ['.br', brotliCompressSync(bytes, { params })],
      ['.gz', gzipSync(bytes, { level: 9 })],
    ] as const)
      if (packed.length < bytes.length) writeFileSync(path + suffix, packed)
  }
}

async function main(): Promise<void> {
  const configFile = join(PANEL, 'vite.config.ts')
  if (!existsSync(configFile)) return
  const digest = digestOfSources()
  if (isPanelBuilt(digest)) return
  const vite = await loadVite()
  if (vite === null) return
  // Its own tools look for their settings from here.
  process.chdir(ROOT)
  rmSync(BUILT_OF, { force: true })
  await vite.build({ root: PANEL, configFile, logLevel: 'warn' })
  compressFiles(DIST)
  writeFileSync(BUILT_OF, `${digest}\n`)
}

if (import.meta.main) await main()
