// What a tenant may have, ask for or hold at once: each limit once, by name, for the code that keeps to it, the messages
// that speak of it and the table in docs/limits.md.

// Answers that are kept for 24 hours, so that the same Idempotency-Key gets the same one.
/** Answers up to this size, encrypted, are not counted; larger ones are compressed. */
export const ANSWER_SMALL_BYTES = 8 * 1024
/** All larger ones of one token; `rate_limited` for a new key beyond. */
export const LARGE_ANSWERS_MAX_BYTES = 64 * 1024 * 1024

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

/**
 * How many names a path may have. PATH_MAX gives a path 4,096 bytes, so at this depth its names have 31 bytes on average;
 * the deepest trees that games bring (unpacked jars, node_modules, Wine prefixes) stay below 40. Every name costs one
 * openat(2) whenever the path is used, so a request pays for at most this many for each path that it names, with turns for
 * others between the paths. What a game nests deeper by itself is counted, moved and removed as a whole, and can be
 * neither named nor made through the API.
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

/** Searches under way; `rate_limited` where more wait on a server than may. */
export const SEARCHES = { atOnce: 4, atOncePerServer: 2, waitingPerServer: 8 } as const

/** Counts of what a backup would leave out; `rate_limited` where more wait on a server than may. */
export const BACKUP_PREVIEWS = { atOnce: 4, atOncePerServer: 1, waitingPerServer: 8 } as const
/** After this long such a count says what it has found so far. */
export const BACKUP_PREVIEW_MS = 5000

/** Pages of directories and of the trash that are being read for one server; `rate_limited` beyond those that may wait. */
export const PAGES_BEING_READ = { atOncePerServer: 4, waitingPerServer: 200 } as const

/** Folders that are being sent as an archive, of one server; `rate_limited` beyond those that may wait. */
export const ARCHIVES_BEING_SENT = { atOncePerServer: 4, waitingPerServer: 20 } as const

/**
 * Uploads and downloads under way in all are a quarter of the descriptors. A server may have one, and more while it leaves as
 * many free as it has and n servers together leave 1 / (n + 1) of them; `rate_limited` for one that has waited this long.
 */
export const TRANSFERS = { waitMs: 10_000 } as const

/** JSON bodies of one token beyond `bytes`, or of unknown size, read at this pace; `rate_limited` where one would wait longer. */
export const LARGE_BODIES = { bytes: 64 * 1024, bytesPerSecond: 256 * 1024, waitMs: 4000 } as const

/** Archives of backups of one server that begin to be made, also for a part of one; `rate_limited` where one would wait longer. */
export const ARCHIVES_BEGUN = { perSecond: 4, burst: 8, waitMs: 5000 } as const

/** Uploads by tus that have begun and not ended, of one server; `server_busy` beyond. */
export const UNFINISHED_UPLOADS_MAX = 1000
/**
 * Records of deletions in the trash of a server that exceeds its quota. Deleting stays possible beyond this, and then frees
 * the oldest small items of the trash that take as much as the new record.
 */
export const RECORDS_BEYOND_QUOTA_BYTES = 1024 * 1024
/** Records of uploads by tus that have ended, of one server: small files that are in no quota. The oldest go first. */
export const FINISHED_UPLOADS_KEPT = 10_000

// Files that are mostly holes. A hole costs its owner nothing, and whoever reads it as much as data does.
/** Holes are read without limit up to this many times the data beside them: a compressing file system saves that much. */
export const SPARSE_RATIO = 8
/**
 * Beyond that ratio, what one backup or one archive reads of holes. A file that would take more is left out of a backup, with
 * a warning, and is refused with `too_large` where it would be packed.
 */
export const HOLES_READ_MAX_BYTES = 64 * 1024 ** 3

/** HTTP connections at once: half of the descriptors that the process may have open and does not need itself, at most this. */
export const CONNECTIONS_MAX = 10_000
/** From one address: a quarter of them, at most this. */
export const CONNECTIONS_PER_ADDRESS_MAX = 512
/** In each window a body has to bring this many bytes, or its end: a slow modem is eight times as fast. */
export const SLOW_CLIENT = { windowMs: 120_000, minBytes: 16 * 1024 } as const
/**
 * An answer of which the system takes nothing for this long, since nobody reads it, is cut. The buffers of both ends take more
 * only in steps, of up to 1.5 MiB: whoever reads 512 bytes a second is not cut, however large they are.
 */
export const UNREAD_ANSWER_MS = 3_600_000
/** Requests on one connection that wait for the answers before them. The connection is cut beyond. */
export const PIPELINED_MAX = 100
/** How long a body that nobody wants any more is thrown away, so that a client that still sends can read its answer. */
export const BODY_LINGER_MS = 2_000
/** Connections from one address on which that is done at a time. The one that began first gives way to the next. */
export const LINGERING_PER_ADDRESS_MAX = 32
/** At which pace, of all connections from one address together, after the first `burstBytes`. */
export const THROWN_AWAY = { bytesPerSecond: 1024 ** 2, burstBytes: 4 * 1024 ** 2 } as const
/** Of a body for which nobody has asked yet. One read can bring twice as much. */
export const UNREAD_BODY_BYTES = 32 * 1024
/**
 * Chunks of a body below `bytes`. After the first few, which are `free`, a connection that sends such chunks is read at most once
 * in `restMs`, and all connections from one address together at this pace. A turn of the event loop in which `perTurn` have
 * come reads nothing more.
 */
export const SMALL_CHUNKS = { bytes: 256, free: 64, perSecond: 50_000, restMs: 10, perTurn: 8192 } as const
/** Connections to the embedded DNS server over TCP. */
export const DNS_CONNECTIONS_MAX = 256
/**
 * Of a JSON body. Bodies that are arriving have no budget of their own: in sum they are bounded by the connections only, 512 MiB
 * from one address and more from several. A budget for all of them would let one sender that is slow on purpose use it up for
 * everybody.
 */
export const JSON_BODY_MAX_BYTES = 1024 * 1024

/**
 * Strings, commas and opening brackets of a JSON body, which is parsed and validated in one turn of the event loop. The
 * largest that means something, a move of a thousand entries, has 7,000.
 */
export const JSON_TOKENS_MAX = 20_000

// Templates, also those that eggs become.
/** Of a template or an egg, as it is sent. */
export const TEMPLATE_MAX_BYTES = 1024 * 1024
/** Values in it, counted before anything is made of them. */
export const TEMPLATE_VALUES_MAX = 5000
/** Objects and lists within each other. */
export const TEMPLATE_DEPTH_MAX = 32
/** Variables of a template. */
export const TEMPLATE_VARIABLES_MAX = 200
/** Arguments of its start command. */
export const TEMPLATE_ARGS_MAX = 200
/** Files that it fills in. */
export const TEMPLATE_CONFIG_FILES_MAX = 50
/** Settings of one of these files. */
export const TEMPLATE_SETTINGS_MAX = 200
/** An install script, or a file that is written. */
export const TEMPLATE_SCRIPT_MAX_CHARS = 256 * 1024
/** The user's own; `quota_exceeded` beyond. */
export const TEMPLATES_MAX = 1000
/** Templates are read in a thread of their own, one at a time. One that takes more seconds of the processor, or more memory, is refused. */
export const TEMPLATE_READING = { seconds: 10, memoryBytes: 128 * 1024 * 1024, waiting: 20 } as const
/** Of a config file that is filled in. */
export const CONFIG_FILE_MAX_BYTES = 1024 * 1024

// The console of a server, which a game can fill as fast as it likes.
/** Of one line; the rest of a longer one is left out. */
export const CONSOLE_LINE_MAX_BYTES = 16 * 1024
/** Lines are kept in files of this size; the oldest go first. */
export const CONSOLE_SEGMENT_BYTES = 1024 * 1024
/** Of all lines of a server. */
export const CONSOLE_KEPT_BYTES = 64 * 1024 * 1024
/** For how long lines are kept: 30 days. */
export const CONSOLE_KEPT_MS = 30 * 24 * 3_600_000
/** Lines of one page. */
export const CONSOLE_PAGE_MAX = 500
/** Of one command. */
export const CONSOLE_COMMAND_MAX_BYTES = 4096
/** Of commands that the game has not read yet; `server_busy` beyond. */
export const CONSOLE_INPUT_MAX_BYTES = 64 * 1024

// What is measured of games, and who plays.
/** How finely points are kept, and how many: an hour, a day and a week of them, in one file of fixed size for each server. */
export const STATS_TIERS = [
  { stepSeconds: 10, points: 360 },
  { stepSeconds: 60, points: 1440 },
  { stepSeconds: 600, points: 1008 },
] as const
/** Of what is asked for. */
export const STATS_STEP_MAX_SECONDS = 86_400
/** Games that have metrics of their own in `/metrics`; of more that run, only the number is told. */
export const METRICS_GAMES_MAX = 2000
/** A game is asked who plays: how long it has, and for how long its answer counts. */
export const PLAYER_QUERY = { timeoutMs: 2000, keptMs: 10_000, sampleMs: 30_000, atOnce: 16 } as const
/** Of what a game answers, in bytes; the connection is cut beyond. */
export const PLAYER_ANSWER_MAX_BYTES = 1024 * 1024
/** Names that are kept of one answer, and of those who have joined. */
export const PLAYER_NAMES_MAX = 200
export const PLAYER_NAME_MAX_CHARS = 64
/** Joins and leaves of one server that are recorded in a minute. What is beyond is counted, and recorded as one entry. */
export const PLAYER_EVENTS_PER_MINUTE = 100

/** Starts of a game that crashes again and again, first after 1 s, then twice as long each time. It is given up after these. */
export const CRASH_RESTARTS = { count: 10, firstMs: 1000, longestMs: 300_000, healthyMs: 600_000 } as const
/** How often the files of a game that runs are counted, where the server has a limit in bytes and where it has none. */
export const DISK_LOOKS = { limitedMs: 60_000, unlimitedMs: 300_000 } as const
/** When a game sleeps: what a server may ask for, how often it is looked whether somebody plays, and when what failed is tried again. */
export const SLEEP = { minutesMin: 1, minutesMax: 10_080, lookEveryMs: 15_000, retryMs: 10_000 } as const
/** Of strangers at the port of one game that sleeps. Where there are more connections, the oldest is cut. */
export const SLEEP_DOOR = { connections: 64, connectionsPerAddress: 8, connectionMs: 10_000, bytesMax: 8192 } as const
/** Where its limits say nothing else: more than any game has, and few enough that one cannot take all of a machine's. */
export const DEFAULT_PROCESSES_MAX = 1024
/** As root, each game has a user of its own out of these: numbers that distributions, containers and systemd leave alone. */
export const DEFAULT_GAME_UIDS = { first: 1_900_000_000, last: 1_900_065_535 } as const

/** Within how many seconds a game has to be up in a rehearsal: by default, and at most. */
export const REHEARSAL_SECONDS = { default: 300, max: 1800 } as const
/** What a rehearsal leaves free on the disk: its files are in nobody's quota, and everybody else needs room too. */
export const REHEARSAL_FREE_BYTES = 1024 ** 3
/** One whose game leaves less than this is ended. */
export const REHEARSAL_FREE_MIN_BYTES = 512 * 1024 ** 2
/** For how long a game has to stay up then. */
export const REHEARSAL_STAYS_MS = 1000
/** A game whose template names no line that says so counts as up once it has run for this long. */
export const REHEARSAL_SETTLE_MS = 5000
/** What is kept of the console of a rehearsal with its backup: the last lines, each cut, and less of them where they are long. */
export const REHEARSAL_LOG = { lines: 200, lineChars: 1000, bytes: 64 * 1024 } as const

// Sessions of the panel, sign-in links and invitations.
/** How long a session lasts without use: 30 days. */
export const SESSION_IDLE_MS = 30 * 24 * 3_600_000
/** How long one lasts in any case: 180 days. */
export const SESSION_MAX_MS = 180 * 24 * 3_600_000
/** Of one token; the oldest is ended for another. */
export const SESSIONS_MAX = 100
/** Of a body that is read before it is known who sends it. */
export const OPEN_BODY_MAX_BYTES = 4096
/** How long a sign-in link works: 15 minutes. */
export const SIGN_IN_LINK_MS = 15 * 60_000
/** Of one token that were not used; the oldest stops working for another. */
export const SIGN_IN_LINKS_MAX = 20
/** How long an invitation works: 24 hours. */
export const INVITATION_MS = 24 * 3_600_000
/** Made by one token and not used; `quota_exceeded` beyond. */
export const INVITATIONS_MAX = 100
