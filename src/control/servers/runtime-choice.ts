// Which runtime a server's owner has chosen, and whether its template takes that.
import { invalidField } from '../../contract/errors.ts'
import type { Runtime } from '../../contract/games/power.ts'
import type { RuntimeChoice } from '../../contract/games/runtime-choice.ts'
import type { Template } from '../../contract/games/template-format.ts'
import type { NewServer } from '../../contract/servers.ts'
import { defaultKind } from '../../templates/resolve.ts'
import type { ServerRow } from '../db/tables.ts'
import { type Actor, requireAllServers } from '../http/actor.ts'

/** null: a process. */
export const choiceOf = ({ runtime_choice: text }: Pick<ServerRow, 'runtime_choice'>): RuntimeChoice | null =>
  text === null ? null : JSON.parse(text)

export interface RuntimeRequest {
  template: Template | undefined
  before: Pick<ServerRow, 'runtime_choice'>
  /** Absent: as it is, where the template takes that. null: the default again. */
  wanted: NewServer['runtime']
  isOtherGame: boolean
}

/** As it is stored. */
export function chooseRuntime(actor: Actor, { template, before, wanted, isOtherGame }: RuntimeRequest): string | null {
  const kept = wanted === null ? null : choiceOf(before)
  if (wanted) return JSON.stringify(checkedChoice(actor, template, wanted))
  const isTaken = kept !== null && (template?.runtimes.includes(kept.kind) ?? !isOtherGame)
  if (isTaken) return JSON.stringify(isOtherGame ? { ...kept, image: null } : kept)
  return template && defaultKind(template) === 'container' ? JSON.stringify({ kind: 'container', image: null }) : null
}

function checkedChoice(actor: Actor, template: Template | undefined, wanted: WantedRuntime): RuntimeChoice {
  const { kind, image = null } = wanted
  if (template && !template.runtimes.includes(kind))
    throw invalidField('/runtime/kind', `must be ${defaultKind(template)}: the template runs in no other way`)
  if (kind === 'process' && image !== null) throw invalidField('/runtime/image', 'has no meaning for a process')
  if (kind === 'container' && !template && image === null)
    throw invalidField('/runtime/image', 'is required without a template')
  // What a tenant may run is what the template lists; whoever creates servers may run anything.
  const isListed = template?.images?.some((listed) => listed.image === image) ?? false
  if (image !== null && !isListed) requireAllServers(actor)
  return { kind, image }
}

type WantedRuntime = NonNullable<NewServer['runtime']>

/** While it runs, what it runs as; otherwise what was chosen, with what is known from the last time. */
export function shownRuntime(choice: RuntimeChoice | null, last: Runtime | null, isActive: boolean): Runtime | null {
  if (choice === null || isActive) return last
  if (last?.kind === choice.kind) return { ...last, image: choice.image }
  return { ...choice, isolation: null, user: null, enforced: null }
}
