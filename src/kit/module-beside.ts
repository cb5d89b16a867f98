/**
 * A module that is named at run time, such as a worker's: the compiler rewrites the extensions of imports only, and what
 * runs is TypeScript in the checkout and JavaScript in the package.
 */
export function moduleBeside(importMetaUrl: string, name: string): URL {
  return new URL(`./${name}${importMetaUrl.endsWith('.ts') ? '.ts' : '.js'}`, importMetaUrl)
}
