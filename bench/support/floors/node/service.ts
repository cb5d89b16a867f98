// The least service in Node: of a tree in which nothing has changed it makes a backup that is durable when it answers, and nothing else.
import { createHash, timingSafeEqual } from 'node:crypto'
import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { syncFolder, walk } from './tree.ts'

export interface Made {
  files: number
}

const [tree = '', folder = '', token = ''] = process.argv.slice(2)
/** As large as what we write of a backup of `game` or `untuned` in which nothing has changed. */
const MANIFEST = Buffer.alloc(2048, 7)
const TEXT = 'x'.repeat(300)

const database = new DatabaseSync(join(folder, 'least.sqlite'))
database.exec('pragma journal_mode = wal; pragma synchronous = full')
database.exec('create table if not exists backups (id integer primary key, about text)')
database.exec('create table if not exists activity (id integer primary key, about text)')
const addBackup = database.prepare('insert into backups (about) values (?)')
const addActivity = database.prepare('insert into activity (about) values (?)')

const digestOf = (text: string) => createHash('sha256').update(text).digest()
const expected = digestOf(`Bearer ${token}`)
let made = 0

function keepManifest(): void {
  const path = join(folder, `${process.pid}-${++made}`)
  const fd = openSync(`${path}.unfinished`, 'wx', 0o600)
  writeSync(fd, MANIFEST)
  fsyncSync(fd)
  closeSync(fd)
  renameSync(`${path}.unfinished`, path)
  syncFolder(folder)
}

function keepRecord(): void {
  database.exec('begin immediate')
  addBackup.run(TEXT)
  addActivity.run(TEXT)
  database.exec('commit')
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  if (!timingSafeEqual(digestOf(request.headers.authorization ?? ''), expected)) {
    response.writeHead(401).end()
    return
  }
  const files = walk(tree, []).length
  keepManifest()
  keepRecord()
  response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ files } satisfies Made))
}

const server = createServer(answer)
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())
