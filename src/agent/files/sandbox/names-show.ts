// Whether a directory shows that a name in it has come or gone.
import { statfsSync } from 'node:fs'
import type { Directory } from './directory.ts'

/**
 * Those on which every such change sets both times of the directory, to the clock's tick: ext, XFS, Btrfs, ZFS, F2FS, bcachefs, tmpfs
 * and overlays of them. Unions of several disks, buckets that are mounted, and FAT do not, or not always.
 */
const TRUSTED = new Set([0xef53, 0x58465342, 0x9123683e, 0x2fc12fc1, 0xf2f52010, 0xca451a4e, 0x01021994, 0x794c7630])

export const showsNames = (top: Directory): boolean => TRUSTED.has(statfsSync(top.address).type)
