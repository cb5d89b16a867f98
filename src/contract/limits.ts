// What a tenant may have, ask for or hold at once: each limit once, by name.

// Backups of files that are mostly holes. A hole costs its owner nothing, and whoever reads it as much as data does.
/** Holes are read without limit up to this many times the data beside them: so much a compressing file system saves. */
export const SPARSE_RATIO = 8
/** Beyond that ratio, what one backup reads of holes. A file that would take more is left out, with a warning. */
export const BACKUP_HOLE_BYTES = 64 * 1024 ** 3
