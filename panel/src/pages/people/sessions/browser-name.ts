// What a browser calls itself, in the two words that people know: "Firefox", "Linux". It can say anything, so it is a hint.

/** The first that fits: most browsers name those that they want to be taken for as well. */
const BROWSERS: readonly [RegExp, string][] = [
  [/\bEdgA?\/|\bEdgiOS\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/\bCriOS\/|Chrom(e|ium)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]
const SYSTEMS: readonly [RegExp, string][] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]
const PHONES = new Set(['iPhone', 'iPad', 'Android'])

export interface BrowserName {
  browser: string | null
  system: string | null
  isPhone: boolean
}

export function browserName(userAgent: string): BrowserName {
  const nameIn = (names: typeof BROWSERS) => names.find(([pattern]) => pattern.test(userAgent))?.[1] ?? null
  const system = nameIn(SYSTEMS)
  return { browser: nameIn(BROWSERS), system, isPhone: system !== null && PHONES.has(system) }
}
