// A guess at what a file is: first by its name, then, for a name that says nothing, by its first bytes.
import { readSync } from 'node:fs'
import { type Directory, openFileAt } from '../sandbox/directory.ts'

const SNIFFED_BYTES = 1024
const UNKNOWN = 'application/octet-stream'

const TEXT = new Map(
  Object.entries({
    txt: 'text/plain',
    log: 'text/plain',
    md: 'text/markdown',
    cfg: 'text/plain',
    conf: 'text/plain',
    ini: 'text/plain',
    properties: 'text/plain',
    env: 'text/plain',
    toml: 'application/toml',
    yml: 'application/yaml',
    yaml: 'application/yaml',
    json: 'application/json',
    json5: 'application/json5',
    mcmeta: 'application/json',
    xml: 'application/xml',
    html: 'text/html',
    htm: 'text/html',
    css: 'text/css',
    csv: 'text/csv',
    js: 'text/javascript',
    mjs: 'text/javascript',
    ts: 'text/plain',
    lua: 'text/x-lua',
    py: 'text/x-python',
    sh: 'text/x-shellscript',
    bat: 'text/plain',
    ps1: 'text/plain',
    sql: 'application/sql',
    vdf: 'text/plain',
    acf: 'text/plain',
    sk: 'text/plain',
    svg: 'image/svg+xml',
    java: 'text/x-java',
    cs: 'text/plain',
    c: 'text/x-c',
    h: 'text/x-c',
    cpp: 'text/x-c',
    go: 'text/plain',
    rs: 'text/plain',
    php: 'text/plain',
    rb: 'text/plain',
    lang: 'text/plain',
    mcfunction: 'text/plain',
    gitignore: 'text/plain',
    backupignore: 'text/plain',
  }),
)

const BINARY = new Map(
  Object.entries({
    jar: 'application/java-archive',
    zip: 'application/zip',
    gz: 'application/gzip',
    tgz: 'application/gzip',
    zst: 'application/zstd',
    tar: 'application/x-tar',
    xz: 'application/x-xz',
    bz2: 'application/x-bzip2',
    '7z': 'application/x-7z-compressed',
    rar: 'application/vnd.rar',
    png: 'image/png',
    jpg: 'image/jpeg',
    jpeg: 'image/jpeg',
    gif: 'image/gif',
    webp: 'image/webp',
    ico: 'image/x-icon',
    ogg: 'audio/ogg',
    mp3: 'audio/mpeg',
    wav: 'audio/wav',
    mp4: 'video/mp4',
    pdf: 'application/pdf',
    db: 'application/vnd.sqlite3',
    sqlite: 'application/vnd.sqlite3',
    sqlite3: 'application/vnd.sqlite3',
    wasm: 'application/wasm',
    dat: UNKNOWN,
    mca: UNKNOWN,
    mcr: UNKNOWN,
    nbt: UNKNOWN,
    so: UNKNOWN,
    exe: UNKNOWN,
    dll: UNKNOWN,
    class: UNKNOWN,
    pak: UNKNOWN,
    bin: UNKNOWN,
    schem: UNKNOWN,
    schematic: UNKNOWN,
    ldb: UNKNOWN,
    wld: UNKNOWN,
  }),
)

export interface Guess {
  mime: string
  isText: boolean
}

/** Opens the file only when its name says nothing. */
export function guess(parent: Directory, name: string): Guess {
  const byName = guessByName(name)
  if (byName) return byName
  return looksLikeText(firstBytes(parent, name))
    ? { mime: 'text/plain', isText: true }
    : { mime: UNKNOWN, isText: false }
}

export function guessByName(name: string): Guess | undefined {
  const extension = name.slice(name.lastIndexOf('.') + 1).toLowerCase()
  const text = TEXT.get(extension)
  if (text) return { mime: text, isText: true }
  const binary = BINARY.get(extension)
  return binary ? { mime: binary, isText: false } : undefined
}

export function looksLikeText(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false
  try {
    // `stream` lets the last character be cut in two.
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return true
  } catch {
    return false
  }
}

function firstBytes(parent: Directory, name: string): Uint8Array {
  try {
    using file = openFileAt(parent, name)
    const buffer = Buffer.alloc(SNIFFED_BYTES)
    return buffer.subarray(0, readSync(file.fd, buffer, 0, SNIFFED_BYTES, 0))
  } catch {
    // Unreadable or gone: a zero byte makes it binary.
    return Uint8Array.of(0)
  }
}
