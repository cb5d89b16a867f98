// `npm ci` and `npm pack` run this: builds the panel into panel/dist and compresses it once, so that no request has to. In a
// checkout without the panel's sources, and where only the service's own dependencies are installed, there is nothing to do.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const PANEL = fileURLToPath(new URL('../panel', import.meta.url))
const COMPRESSIBLE = new Set(['.css', '.html', '.js', '.json', '.svg', '.txt', '.wasm', '.webmanifest'])
/** Below this a packet is not saved. */
const WORTH_IT_BYTES = 1024

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

/** Beside each file, where it saves something. */
export function compressFiles(directory: string): void {
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !COMPRESSIBLE.has(extname(entry.name))) continue
    const path = join(entry.parentPath, entry.name)
    const bytes = readFileSync(path)
    if (bytes.length < WORTH_IT_BYTES) continue
    const parameters = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
    for (const [suffix, packed] of [
      ['.br', brotliCompressSync(bytes, { params: parameters })],
      ['.gz', gzipSync(bytes, { level: 9 })],
    ] as const)
      if (packed.length < bytes.length) writeFileSync(path + suffix, packed)
  }
}

async function main(): Promise<void> {
  const configFile = join(PANEL, 'vite.config.ts')
  if (!existsSync(configFile)) return
  const vite = await loadVite()
  if (vite === null) return
  // Its own tools look for their settings from here.
  process.chdir(dirname(PANEL))
  await vite.build({ root: PANEL, configFile, logLevel: 'warn' })
  compressFiles(join(PANEL, 'dist'))
}

if (import.meta.main) await main()
