// How a game gets its environment: from a descriptor, by the last thing that runs before it, as its own user. What starts it,
// some of it as root and outside of what isolates the game, has an environment of nothing: a loader that is told by a template
// where to find libraries would run a stranger's code there.
import { fail } from '../../../contract/errors.ts'
import { isRefusedName } from '../../../contract/games/environment-names.ts'
import { ENVIRONMENT_FD } from '../supervisor/protocol.ts'

const SHELL = '/bin/sh'
/**
 * Nothing of a template is in its text, nor, as anybody on the machine could read that, in its arguments. An empty line is the
 * last: who writes them may be busy for a while before it closes its end.
 */
const TAKE_OVER =
  `while IFS= read -r GAMEKEEPER_ENTRY <&${ENVIRONMENT_FD} && [ "$GAMEKEEPER_ENTRY" ]; do export "$GAMEKEEPER_ENTRY"; done; ` +
  `unset GAMEKEEPER_ENTRY; exec ${ENVIRONMENT_FD}<&-; exec "$@"`

const NAME = /^[A-Za-z_]\w*$/

/** The line that takes the environment over, and then is the game. */
export const handOver = (argv: readonly string[]): string[] => [SHELL, '-c', TAKE_OVER, 'sh', ...argv]

/** One entry on each line, and an empty one. Fails with `not_startable` where a game does not get it: a template may be older than the rule. */
export function environmentLines(environment: Readonly<Record<string, string>>): string {
  const entries = Object.entries(environment)
  for (const [name, value] of entries) {
    if (!NAME.test(name) || isRefusedName(name))
      throw fail('not_startable', `The template sets ${name}, which no game gets. Take it out of its \`environment\`.`)
    if (/[\n\0]/.test(value))
      throw fail('not_startable', `The value of ${name} is more than one line. Correct it, then start again.`)
  }
  return `${entries.map(([name, value]) => `${name}=${value}\n`).join('')}\n`
}
