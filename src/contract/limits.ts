// What a tenant may ask of the service at most. One place, so that the code, the docs and the tests mean the same number.

/**
 * How many names a path may have. PATH_MAX gives a path 4,096 bytes, so at this depth its names have 31 bytes on average;
 * the deepest trees that games bring (unpacked jars, node_modules, Wine prefixes) stay below 40. Every name costs one
 * openat(2) whenever the path is used, so a request pays for at most this many. What a game nests deeper by itself is
 * counted, moved and removed as a whole, and can be neither named nor made through the API.
 */
export const MAX_DEPTH = 128

/** Files of one upload form: their names are in memory until the last has arrived. */
export const FORM_FILES_MAX = 10_000
/** Names, directories included, in the paths of all of them. */
export const FORM_NAMES_MAX = 250_000
/** Bytes of the paths of all of them: they are in one record of the journal. */
export const FORM_PATH_BYTES_MAX = 4 * 1024 * 1024
/** A path of 4,096 bytes, percent-encoded as some libraries send it, and as much again for everything else. */
export const PART_HEADER_BYTES_MAX = 16 * 1024
/** Browsers and libraries send two or three. */
export const PART_HEADERS_MAX = 16

/**
 * Files, directories and symlinks that a server may have, those in its trash included, where its `limits` say nothing
 * else: more than any game makes, and few enough that one server cannot use up the inodes of a disk.
 */
export const DEFAULT_ENTRIES_MAX = 1_000_000
