// What is wrong with work on files whatever is on the disk, so that it is refused before it is queued. What depends on the
// disk or the network fails the job.
import type { FilesWork } from '../../contract/agent/agent-files.ts'
import { fail } from '../../contract/errors.ts'
import { checkNewName, parseEntry, parsePath } from '../../contract/files/path-rules.ts'
import { parsePullUrl } from '../../contract/files/pull-url.ts'
import { createTurns } from '../../kit/waiting/turns.ts'

export async function checkFilesWork(serverId: string, work: FilesWork): Promise<void> {
  if (work.kind === 'files.pack') {
    const root = parsePath(work.root)
    const turn = createTurns(serverId)
    for (const entry of work.files) {
      if (turn.due()) await turn.take()
      parseEntry(root, entry)
    }
    if (work.target !== undefined) checkNewName(parsePath(work.target).at(-1) ?? '')
  } else if (work.kind === 'files.unpack') {
    if (parsePath(work.path).length === 0) throw fail('invalid_path', 'The top directory is not an archive.')
    parsePath(work.directory)
  } else {
    parsePullUrl(work.url)
    const directory = parsePath(work.directory)
    if (work.name !== undefined) parseEntry(directory, checkNewName(work.name))
  }
}
