import type { PluginItem } from '@babel/core'
import { getConfig } from '@lingui/conf'
import { lingui } from '@lingui/vite-plugin'
import react from '@vitejs/plugin-react'
import { defineConfig, type Rolldown } from 'vite'
import packageJson from '../package.json' with { type: 'json' }
import { documentationFree } from './dev/documentation-free.ts'
import { themeVariables } from './dev/theme-css.ts'

/** The service that `npm run panel` shows. Its host stays as the browser named it: the service compares it with the Origin. */
const service = { target: process.env.GAMEKEEPER_URL ?? 'http://127.0.0.1:8080', changeOrigin: false }
const linguiConfig = { configPath: `${import.meta.dirname}/lingui.config.ts` }
const linguiMacros = ['@lingui/babel-plugin-lingui-macro', { linguiConfig: getConfig(linguiConfig) }]

/** A file that none is for is spared Babel, by far the slowest part of the build. */
function babelPluginsFor(id: string): PluginItem[] {
  if (id.includes('/src/contract/')) return [documentationFree]
  return id.includes('/panel/src/') ? [linguiMacros] : []
}

/**
 * Whatever the first page loads anyway comes as one file: it would be fifty, most of them small, as other pages use parts of
 * it too (`npm run bench -- panel`, ms until the servers page can be used).
 */
function inFirstPage(): (id: string, build: Rolldown.ChunkingContext) => string | null {
  let first: Set<string> | undefined
  return (id, build) => {
    first ??= staticallyImportedBy(`${import.meta.dirname}/src/main.tsx`, build)
    return first.has(id) ? 'first' : null
  }
}

function staticallyImportedBy(entry: string, build: Rolldown.ChunkingContext): Set<string> {
  const found = new Set([entry])
  for (const id of found) for (const imported of build.getModuleInfo(id)?.importedIds ?? []) found.add(imported)
  return found
}

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react({ babel: (id) => ({ plugins: babelPluginsFor(id) }) }), lingui(linguiConfig), themeVariables()],
  define: { __VERSION__: JSON.stringify(packageJson.version) },
  server: { proxy: { '/v1': service, '/readyz': service } },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // An asset within a style sheet or a script would need an exception from the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2024',
    chunkSizeWarningLimit: 1000,
    reportCompressedSize: false,
    rolldownOptions: {
      checks: { bundlerTimings: false },
      output: { codeSplitting: { groups: [{ name: inFirstPage() }] } },
    },
  },
})
