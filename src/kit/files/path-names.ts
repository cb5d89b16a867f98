/** The names that a path is made of, from the top. Slashes in a row, at the start or at the end, and `.` add none. */
export function pathNames(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.')
}
