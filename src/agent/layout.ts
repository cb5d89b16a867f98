// Where things are on an agent's disk. One server has one folder, so that a rename between its parts never crosses a
// file system.
import { join } from 'node:path'
import { fail } from '../contract/errors.ts'

const SERVER_ID = /^srv_[0-9a-z]{1,64}$/

export interface ServerFolders {
  /** The server's own folder; the game sees only `files`. */
  root: string
  files: string
  /** Deleted and replaced files, until they are emptied. */
  trash: string
  /** What is not complete yet: uploads, copies, archives being unpacked. Nothing in it is ever needed after a restart unless a neighbouring record says so. */
  staging: string
}

export interface Layout {
  servers: string
  backups: string
  /** By which the next process knows again what of large files it has stored. It may go at any time. */
  prints: string
  /** Changes and their results, until they are recorded. */
  journal: string
  /** Where facts lay before there was a journal. */
  facts: string
  /** Deleted servers that can be brought back, each whole under its id. */
  held: string
  /** Whole servers on their way out. */
  removed: string
  /** A data directory in small, where a backup is rehearsed. Nothing in it is needed after a restart. */
  rehearsals: string
  /** Containers of rehearsals that have to go, until they have. */
  leftContainers: string
  /** The tokens whose links are dead. */
  revoked: string
  /** By which name the mirror of the backups is claimed, and how large it was. */
  mirror: string
  /** Where the bucket of the mirror was found by a recovery. */
  bucket: string
  server(serverId: string): ServerFolders
}

export function layout(dataDir: string): Layout {
  const servers = join(dataDir, 'servers')
  return {
    servers,
    backups: join(dataDir, 'backups'),
    prints: join(dataDir, 'prints'),
    journal: join(dataDir, 'journal'),
    facts: join(dataDir, 'facts'),
    held: join(dataDir, 'held'),
    removed: join(dataDir, 'removed'),
    rehearsals: join(dataDir, 'rehearsals'),
    leftContainers: join(dataDir, 'left-containers.json'),
    revoked: join(dataDir, 'revoked-links.json'),
    mirror: join(dataDir, 'mirror.json'),
    bucket: join(dataDir, 'bucket.json'),
    server(serverId) {
      if (!SERVER_ID.test(serverId)) throw fail('not_found', 'No such server.')
      const root = join(servers, serverId)
      return { root, files: join(root, 'files'), trash: join(root, 'trash'), staging: join(root, 'staging') }
    },
  }
}
