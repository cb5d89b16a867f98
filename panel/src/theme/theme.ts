import { createTheme, type MantineColorsTuple } from '@mantine/core'

/** The green of a gamekeeper's coat. Shade 7 on white and shade 4 on the dark ground both pass WCAG AA for text. */
const moss: MantineColorsTuple = [
  '#eef8f3',
  '#dbeee4',
  '#b3dcc8',
  '#88c9aa',
  '#65b991',
  '#46a67c',
  '#2f8f68',
  '#1f7455',
  '#195f46',
  '#114a36',
]

/** Neutral with a breath of green, from the lightest text to the darkest ground. */
const dark: MantineColorsTuple = [
  '#e3e8e5',
  '#c3cbc7',
  '#a1aba6',
  '#6f7a75',
  '#3c4642',
  '#2c3532',
  '#232b28',
  '#1a211e',
  '#141a18',
  '#0e1311',
]

const gray: MantineColorsTuple = [
  '#f7f9f8',
  '#f0f3f1',
  '#e5e9e7',
  '#d6dcd9',
  '#c3cbc7',
  '#98a39e',
  '#66726c',
  '#4a5550',
  '#333c38',
  '#1d2421',
]

/** As Mantine's, with a shade 7 on which white text passes WCAG AA. */
const red: MantineColorsTuple = [
  '#fff5f5',
  '#ffe3e3',
  '#ffc9c9',
  '#ffa8a8',
  '#ff8787',
  '#f06a6a',
  '#e04f4f',
  '#c62f2f',
  '#ad2525',
  '#941c1c',
]

export const theme = createTheme({
  colors: { moss, dark, gray, red },
  primaryColor: 'moss',
  primaryShade: 7,
  defaultRadius: 'md',
  cursorType: 'pointer',
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif",
  fontFamilyMonospace:
    "ui-monospace, 'Cascadia Code', 'JetBrains Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
  headings: { fontWeight: '650' },
  components: {
    // react-remove-scroll works by a style element, which the Content-Security-Policy refuses. base.css does it instead.
    Modal: { defaultProps: { lockScroll: false, centered: true, transitionProps: { duration: 120 } } },
    Drawer: { defaultProps: { lockScroll: false } },
    Tooltip: { defaultProps: { openDelay: 350, withArrow: true } },
    Menu: { defaultProps: { shadow: 'md', transitionProps: { duration: 100 } } },
  },
})

export const COLOR_SCHEME_KEY = 'gamekeeper-color-scheme'
