import { i18n, type Messages } from '@lingui/core'

export const LOCALES = { en: 'English', de: 'Deutsch' } as const
export type Locale = keyof typeof LOCALES

const KEY = 'gamekeeper-locale'
/** Of pseudo.ts. */
const PSEUDO = 'pseudo'
const catalogs: Record<Locale, () => Promise<{ messages: Messages }>> = {
  en: () => import('./locales/en.po'),
  de: () => import('./locales/de.po'),
}
const isLocale = (text: string | null | undefined): text is Locale => text != null && Object.hasOwn(LOCALES, text)

/** As chosen here before, else the first language of the browser that there is, else English. */
export function preferredLocale(): Locale {
  const stored = readStored()
  if (isLocale(stored)) return stored
  return navigator.languages.map((language) => language.split('-')[0]).find(isLocale) ?? 'en'
}

export async function activateLocale(locale: Locale): Promise<void> {
  const { messages } = await catalogs[locale]()
  i18n.loadAndActivate({ locale, messages })
  document.documentElement.lang = locale
}

/** What the first page is in. */
export async function activatePreferred(): Promise<void> {
  if (readStored() !== PSEUDO) return activateLocale(preferredLocale())
  const [{ messages }, { pseudoMessages }] = await Promise.all([catalogs.en(), import('./pseudo.ts')])
  i18n.loadAndActivate({ locale: 'en', messages: pseudoMessages(messages) })
  document.documentElement.dir = 'rtl'
}

export async function chooseLocale(locale: Locale): Promise<void> {
  await activateLocale(locale)
  try {
    localStorage.setItem(KEY, locale)
  } catch {
    // Storage is switched off: the choice holds for this page.
  }
}

function readStored(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}
