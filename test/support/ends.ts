// Loaded into every test file by `npm test`: one whose tests have ended, and that does not end, says what keeps it, and fails.
// Otherwise the run would wait for it for ever, without a word.
import { after } from 'node:test'
import { isMainThread } from 'node:worker_threads'
import { childrenNow, commandOf } from './children.ts'

/** From the moment in which its last test has ended: what it closes then takes its time on a busy machine. */
const ENDS_WITHIN_MS = Number(process.env.GAMEKEEPER_TEST_ENDS_WITHIN_MS ?? 180_000)

if (isMainThread && process.env.NODE_TEST_CONTEXT)
  after(() => {
    setTimeout(giveUp, ENDS_WITHIN_MS).unref()
  })

function giveUp(): void {
  const open = [...process.getActiveResourcesInfo(), ...childrenNow().map(commandOf)].join('\n  ')
  process.stderr.write(`${process.argv[1]}: all tests have ended, and this keeps it from ending:\n  ${open}\n`)
  process.exit(1)
}
