// The variables of the theme as a style sheet of their own. Mantine would put them into a style element while the page runs,
// which the Content-Security-Policy refuses.
import { convertCssVariables, DEFAULT_THEME, defaultCssVariablesResolver, mergeMantineTheme } from '@mantine/core'
import type { Plugin } from 'vite'
import { theme } from '../src/theme/theme.ts'

const ID = 'virtual:theme-variables.css'

export function themeVariables(): Plugin {
  return {
    name: 'gamekeeper-theme-variables',
    resolveId: (id) => (id === ID ? `\0${ID}` : null),
    load: (id) => (id === `\0${ID}` ? themeCss() : null),
  }
}

function themeCss(): string {
  const variables = defaultCssVariablesResolver(mergeMantineTheme(DEFAULT_THEME, theme))
  return convertCssVariables({
    variables: variables.variables,
    light: { ...variables.light, '--mantine-color-scheme': 'light' },
    dark: { ...variables.dark, '--mantine-color-scheme': 'dark' },
  })
}
