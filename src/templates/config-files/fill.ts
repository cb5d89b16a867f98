// Fills in config files: text in, text out. Reading and writing them is for whoever holds the files.
import { CONFIG_FILE_MAX_BYTES } from '../../contract/fixed-limits.ts'
import type { ConfigFormat } from '../../contract/games/template-format.ts'
import { ConfigFault, type ConfigSetting } from './config-edit.ts'
import { fillJson } from './json-files.ts'
import { fillIni, fillProperties, fillText } from './line-files.ts'
import { fillToml } from './toml-files.ts'
import { fillXml } from './xml-files.ts'
import { fillYaml } from './yaml-files.ts'

const FILL: Record<ConfigFormat, (text: string, settings: readonly ConfigSetting[]) => string> = {
  properties: fillProperties,
  json: fillJson,
  yaml: fillYaml,
  toml: fillToml,
  ini: fillIni,
  xml: fillXml,
  text: fillText,
}

/**
 * The text with the settings in it: what they do not name stays. Throws ConfigFault where the text is not what its format
 * says. A file that is not there yet is an empty text. It takes time that grows with the text times the settings: files of
 * servers go through config-filler.ts.
 */
export function fillConfig(format: ConfigFormat, text: string, settings: readonly ConfigSetting[]): string {
  if (Buffer.byteLength(text) > CONFIG_FILE_MAX_BYTES)
    throw new ConfigFault(`it is larger than ${CONFIG_FILE_MAX_BYTES} bytes`)
  const hasMark = text.startsWith('\ufeff')
  const filled = FILL[format](hasMark ? text.slice(1) : text, settings)
  return hasMark ? `\ufeff${filled}` : filled
}

export { ConfigFault, type ConfigSetting }
