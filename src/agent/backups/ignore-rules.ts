// Gitignore patterns against the paths of a tree.
import ignore, { type Ignore } from 'ignore'

/** `ignore` remembers every path it was asked about; a tree of a million files must not. */
const ASKED_AT_MOST = 20_000

export interface IgnoreRules {
  isIgnored(path: string, isDirectory: boolean): boolean
}

export function createIgnoreRules(patterns: string): IgnoreRules {
  if (patterns.split('\n').every((line) => line.trim() === '' || line.startsWith('#')))
    return { isIgnored: () => false }
  let rules: Ignore | undefined
  let asked = 0
  return {
    isIgnored(path, isDirectory) {
      if (!rules || ++asked > ASKED_AT_MOST) {
        rules = ignore({ allowRelativePaths: true }).add(patterns)
        asked = 0
      }
      return rules.ignores(isDirectory ? `${path.slice(1)}/` : path.slice(1))
    },
  }
}
