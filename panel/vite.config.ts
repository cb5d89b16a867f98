import type { PluginItem } from '@babel/core'
import { getConfig } from '@lingui/conf'
import { lingui } from '@lingui/vite-plugin'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
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
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
})
