import { getConfig } from '@lingui/conf'
import { lingui } from '@lingui/vite-plugin'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'
import { createSessionShim } from './dev/session-shim.ts'
import { themeVariables } from './dev/theme-css.ts'

const linguiConfig = { configPath: `${import.meta.dirname}/lingui.config.ts` }

export default defineConfig({
  root: import.meta.dirname,
  plugins: [
    react({ babel: { plugins: [['@lingui/babel-plugin-lingui-macro', { linguiConfig: getConfig(linguiConfig) }]] } }),
    lingui(linguiConfig),
    themeVariables(),
    service(),
  ],
  resolve: { alias: { typebox: `${import.meta.dirname}/dev/schema-free.ts` } },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // An asset within a style sheet or a script would need an exception from the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2024',
  },
})

/** `vite` alone serves the panel against a service that runs already. */
function service(): Plugin {
  return {
    name: 'gamekeeper-service',
    configureServer(server) {
      const target = process.env.GAMEKEEPER_URL ?? 'http://127.0.0.1:8080'
      const shim = createSessionShim(target, process.env.GAMEKEEPER_TOKEN ?? null)
      server.middlewares.use((incoming, answer, next) => void (shim(incoming, answer) || next()))
    },
  }
}
