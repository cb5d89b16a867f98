export type RenameRule =
  | { kind: 'replace'; find: string; replacement: string }
  /** `{name}` is the old name without its ending, `{n}` the number, `{ext}` the ending with its dot. */
  | { kind: 'pattern'; pattern: string; first: number }

export interface NewName {
  from: string
  to: string
  fault: 'empty' | 'slash' | 'taken' | 'twice' | null
}

/** What each would be called, and what is wrong with it. `taken` are all names of the folder. */
export function newNames(names: readonly string[], taken: ReadonlySet<string>, rule: RenameRule): NewName[] {
  const width = String(names.length + (rule.kind === 'pattern' ? rule.first : 0)).length
  const renamed = names.map((from, index) => ({ from, to: nameBy(rule, from, index, width) }))
  const counts = new Map<string, number>()
  for (const { to } of renamed) counts.set(to, (counts.get(to) ?? 0) + 1)
  const leaving = new Set(renamed.filter(({ from, to }) => from !== to).map(({ from }) => from))
  const faultOf = (from: string, to: string): NewName['fault'] => {
    if (to.trim() === '') return 'empty'
    if (to.includes('/')) return 'slash'
    if ((counts.get(to) ?? 0) > 1) return 'twice'
    return to !== from && taken.has(to) && !leaving.has(to) ? 'taken' : null
  }
  return renamed.map(({ from, to }) => ({ from, to, fault: faultOf(from, to) }))
}

function nameBy(rule: RenameRule, name: string, index: number, width: number): string {
  if (rule.kind === 'replace') return rule.find === '' ? name : name.replaceAll(rule.find, () => rule.replacement)
  const dot = name.lastIndexOf('.')
  const end = dot > 0 ? dot : name.length
  const parts: Record<string, string> = {
    name: name.slice(0, end),
    ext: name.slice(end),
    n: String(rule.first + index).padStart(width, '0'),
  }
  return rule.pattern.replace(/\{(name|n|ext)\}/g, (_, part: string) => parts[part] ?? '')
}
