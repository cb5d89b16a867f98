// What the least programs in Node look at, and how they make sure of what they wrote.
import { closeSync, fsyncSync, lstatSync, openSync, readdirSync } from 'node:fs'
import { BLOCK, type LeastFile } from './steps.ts'

export function walk(folder: string, files: LeastFile[]): LeastFile[] {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`
    const { size, mtimeMs } = lstatSync(path)
    if (entry.isDirectory()) walk(path, files)
    else {
      const last = files.at(-1)
      files.push({ path, size, mtimeMs, first: last ? last.first + Math.ceil(last.size / BLOCK) : 0 })
    }
  }
  return files
}

export function syncFolder(path: string): void {
  const fd = openSync(path, 'r')
  fsyncSync(fd)
  closeSync(fd)
}
