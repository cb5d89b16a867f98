// What another process has open.
import { readdirSync, readlinkSync } from 'node:fs'

export function openPaths(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)]
    } catch {
      // Closed since.
      return []
    }
  })
}
