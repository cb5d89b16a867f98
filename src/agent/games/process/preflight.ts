// What can be known before a start, so that nobody has to find it in a log afterwards.
import { createSocket } from 'node:dgram'
import { statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import { posix } from 'node:path'
import { fail, isFailure } from '../../../contract/errors.ts'
import type { Launch, LaunchPort } from '../../../contract/games/launch.ts'
import { hasCode } from '../../../kit/files/errno.ts'
import { describePath } from '../../files/reading/entries.ts'
import type { ServerFiles } from '../../files/server-files.ts'
import { findProgram } from './isolation.ts'
import { requireProgram } from './programs.ts'

/** Below this nothing that a game writes is safe. */
const FREE_MIN_BYTES = 16 * 1024 * 1024

export async function checkLaunch(launch: Launch, server: ServerFiles): Promise<void> {
  if (launch.shellLine !== null)
    throw fail('not_startable', 'The template starts the game by a line for a shell, which only runs in a container.')
  if (launch.container !== null)
    throw fail('not_startable', 'The game runs in a container, which is not what this was asked of.')
  for (const required of launch.requires) await requireProgram(required)
  checkSystemProgram(launch)
  await checkSurroundings(launch, server)
}

/** What counts wherever it runs. */
export async function checkSurroundings(launch: Launch, server: ServerFiles): Promise<void> {
  checkFolder(launch, server)
  checkOwnProgram(launch, server)
  await checkDisk(server.folders.files)
  for (const port of launch.ports) await checkPort(port)
}

function checkFolder({ workingDirectory }: Launch, server: ServerFiles): void {
  if (kindAt(server, workingDirectory)?.kind !== 'directory')
    throw fail('not_startable', `The directory ${workingDirectory} is missing. The game is to be started in it.`)
}

function checkSystemProgram({ argv: [program] }: Launch): void {
  if (program.includes('/') || findProgram(program)) return
  throw fail('not_startable', `The program ${program} is not installed on this machine. Install it, then start again.`)
}

function checkOwnProgram({ argv: [program], workingDirectory, container }: Launch, server: ServerFiles): void {
  if (!program.includes('/') || program.startsWith('/') || container?.installer) return
  const path = posix.join(workingDirectory, program)
  const found = kindAt(server, path)
  if (!found) throw fail('not_startable', `The file ${path} is missing. Upload it, then start again.`)
  if (found.kind === 'directory') throw fail('not_startable', `${path} is a directory, not a program.`)
  if (found.kind === 'file' && (Number.parseInt(found.mode, 8) & 0o100) === 0)
    throw fail('not_startable', `The file ${path} is not executable. Set its mode to 0755, then start again.`)
}

function kindAt(server: ServerFiles, path: string) {
  try {
    return describePath(server.files, path)
  } catch (error) {
    if (isFailure(error, 'not_found') || isFailure(error, 'invalid_path')) return undefined
    throw error
  }
}

async function checkDisk(folder: string): Promise<void> {
  const { bavail, bsize } = await statfs(folder)
  if (bavail * bsize < FREE_MIN_BYTES)
    throw fail('disk_full', 'The disk has less than 16 MiB free, so the game could not save. Free some space first.')
}

/** As a game takes it: on every address. */
async function checkPort({ name, port, protocol }: LaunchPort): Promise<void> {
  try {
    await (protocol === 'tcp' ? tryTcp(port) : tryUdp(port))
  } catch (error) {
    if (hasCode(error, 'EADDRINUSE'))
      throw fail(
        'port_taken',
        `Port ${port} (${protocol}, ${name}) is in use by another program. Stop it, or choose another port.`,
      )
    if (hasCode(error, 'EACCES'))
      throw fail('not_startable', `Port ${port} (${protocol}, ${name}) is below 1024, which a game may not use.`)
    throw error
  }
}

function tryTcp(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ port, host: '0.0.0.0', exclusive: true }, () => server.close(() => resolve()))
  })
}

function tryUdp(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4')
    socket.once('error', (error) => {
      socket.close()
      reject(error)
    })
    socket.bind({ port, address: '0.0.0.0', exclusive: true }, () => socket.close(() => resolve()))
  })
}
