// Before the first paint: light or dark, as chosen here before, or as the system has it. A file of its own, because the
// Content-Security-Policy allows no inline script.
;(() => {
  const root = document.documentElement
  let chosen = null
  try {
    chosen = localStorage.getItem('gamekeeper-color-scheme')
  } catch {
    // Storage is switched off: the system decides.
  }
  const isDark = chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  root.setAttribute('data-mantine-color-scheme', isDark ? 'dark' : 'light')
})()
