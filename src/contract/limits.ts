// How much of one thing a tenant may ask of the service. Nothing that grows with a tenant's data is without a limit here or
// one of the same kind in the settings.

// Archives that are unpacked.
export const ARCHIVE_MAX_ENTRIES = 1_000_000
export const ARCHIVE_MAX_BYTES = 1024 ** 4
/** How many times its own size an archive may unpack to, headers included, beyond a size that could hurt nobody. */
export const ARCHIVE_MAX_RATIO = 200
export const ARCHIVE_HARMLESS_BYTES = 64 * 1024 * 1024
/** It is read in steps; a million entries with long names have room. */
export const ZIP_DIRECTORY_MAX_BYTES = 256 * 1024 * 1024
/** Extended headers before one entry of a tar: pax records, global ones, and GNU's long names. */
export const TAR_EXTENDED_MAX_BYTES = 256 * 1024
export const TAR_EXTENDED_MAX_HEADERS = 16
