/** For `like … escape '\\'`: text that holds what is sought, in which `%`, `_` and `\` stand for themselves. */
export function containing(sought: string): string {
  return `%${sought.replace(/[\\%_]/g, '\\$&')}%`
}
