// Changes a tree in a process of its own, so that whoever measures next has no garbage of it to collect.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { changeInPlace, changeSmallFiles } from '../game-tree.ts'

export interface TreeChange {
  root: string
  seed: number
  files: number
  bytes: number
  smallFiles: number
}

export function changeTree(change: TreeChange): void {
  execFileSync(process.execPath, [fileURLToPath(import.meta.url), JSON.stringify(change)])
}

if (import.meta.main) {
  const { root, seed, files, bytes, smallFiles } = JSON.parse(process.argv[2] ?? '') as TreeChange
  changeInPlace(root, { files, bytes }, seed)
  changeSmallFiles(root, smallFiles)
}
