// What a tenant may have, ask for or hold at once: each limit once, by name, for the code that keeps to it, the messages
// that speak of it and the table in docs/limits.md.

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

// What is recorded and queued.
/** Of an entry's properties, as JSON. What does not fit is left out and counted. */
export const PROPERTIES_MAX_BYTES = 8 * 1024
/** Of what a job answers, as JSON. */
export const JOB_RESULT_MAX_BYTES = 64 * 1024
/** What a job was asked for is kept whole until it has ended, so that it can be run again; after that, if it is small. */
export const JOB_INPUT_KEPT_BYTES = 8 * 1024
/** Jobs of one server that have not ended, and what they were asked for. */
export const UNFINISHED_JOBS_MAX = 500
export const UNFINISHED_JOBS_MAX_BYTES = 8 * 1024 * 1024
/** Starts of one job after which the process went down. */
export const JOB_CRASHES_MAX = 3
/** Of a User-Agent header, wherever it is recorded. */
export const USER_AGENT_MAX_CHARS = 512
/** Of a stream of entries that is read from the database, and waits for its reader, at a time. */
export const STREAM_BATCH_BYTES = 256 * 1024
/** How long a reader of a stream may take for one batch before it is dropped. */
export const SLOW_READER_MS = 30_000
