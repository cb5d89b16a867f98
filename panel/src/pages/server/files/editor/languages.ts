import { type LanguageSupport, StreamLanguage } from '@codemirror/language'

type Language = LanguageSupport | StreamLanguage<unknown>

const properties = () =>
  import('@codemirror/legacy-modes/mode/properties').then((mode) => StreamLanguage.define(mode.properties))
const yaml = () => import('@codemirror/lang-yaml').then((mode) => mode.yaml())
const json = () => import('@codemirror/lang-json').then((mode) => mode.json())
const shell = () => import('@codemirror/legacy-modes/mode/shell').then((mode) => StreamLanguage.define(mode.shell))

/** By the end of the file's name. Each comes with the first file that needs it. */
const LANGUAGES: Record<string, () => Promise<Language>> = {
  json,
  json5: json,
  mcmeta: json,
  yaml,
  yml: yaml,
  properties,
  ini: properties,
  cfg: properties,
  conf: properties,
  toml: () => import('@codemirror/legacy-modes/mode/toml').then((mode) => StreamLanguage.define(mode.toml)),
  lua: () => import('@codemirror/legacy-modes/mode/lua').then((mode) => StreamLanguage.define(mode.lua)),
  xml: () => import('@codemirror/lang-xml').then((mode) => mode.xml()),
  sh: shell,
  bash: shell,
}

export async function loadLanguage(name: string): Promise<Language | null> {
  const ending = name.toLowerCase().split('.').at(-1) ?? ''
  return Object.hasOwn(LANGUAGES, ending) ? ((await LANGUAGES[ending]?.()) ?? null) : null
}
