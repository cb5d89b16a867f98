// `gamekeeper offsite status|prune|claim`
import type { Offsite } from '../../../sdk/index.ts'
import { command } from '../../command.ts'
import type { Context } from '../../context.ts'
import { EXIT } from '../../exit-codes.ts'
import { formatProgress } from '../../progress.ts'
import { formatFields } from '../../text.ts'
import { formatAgo, formatSize } from '../../units.ts'

export const status = command({
  summary: 'Show the state of the off-site store',
  description: 'Exits with 1 when there is something that somebody has to do something about.',
  args: [],
  options: {},
  examples: ['gamekeeper offsite status', 'gamekeeper offsite status --json'],
  async run(context) {
    const offsite = await context.client().offsite.read({ signal: context.io.signal })
    present(context, offsite)
    return offsite.problem === null ? EXIT.ok : EXIT.failed
  },
})

export const prune = command({
  summary: 'Remove what the local store no longer has, though a safeguard stands against it',
  description:
    'What retention and users have deleted is removed by itself. It waits for you where less than half of the off-site\n' +
    'store would be left, or where the local store lacks what nobody has deleted. Without --confirm, only shows what\n' +
    'would go. Exits with 1 where nothing can be removed.',
  args: [],
  options: { confirm: { type: 'boolean', help: 'Remove it, for good' } },
  examples: ['gamekeeper offsite prune', 'gamekeeper offsite prune --confirm'],
  async run(context, { confirm = false }) {
    const { signal } = context.io
    const { offsite } = context.client()
    const state = await offsite.read({ signal })
    const { surplus } = state
    if (context.json && !confirm) context.print(state)
    if (surplus === null) {
      context.say('There is nothing to remove.')
      return EXIT.ok
    }
    context.say(`${describeSurplus(surplus)}.`)
    if (surplus.reason === 'append_only') {
      const refusal = state.problem ?? 'The key may not delete.'
      context.note(state.isAppendOnly ? 'GAMEKEEPER_OFFSITE_APPEND_ONLY is set: nothing is ever removed.' : refusal)
      return EXIT.failed
    }
    if (!confirm) {
      context.note('To remove it for good: gamekeeper offsite prune --confirm')
      return EXIT.ok
    }
    const answer = await offsite.prune(surplus.bytes, { signal })
    if (context.json) context.print(answer)
    context.say('It is being removed. "gamekeeper offsite status" shows when it is done.')
    return EXIT.ok
  },
})

export const claim = command({
  summary: 'Take the off-site store over from the service that has it',
  description: 'For a service that is gone for good. Should it come back, it is refused from then on.',
  args: [],
  options: {},
  examples: ['gamekeeper offsite claim'],
  async run(context) {
    const answer = await context.client().offsite.claim({ signal: context.io.signal })
    if (context.json) context.print(answer)
    context.say(`${answer.place} belongs to this service now.`)
    return undefined
  },
})

function describeSurplus({ backups, blobs, bytes }: NonNullable<Offsite['surplus']>): string {
  return `${formatSize(bytes)} in ${blobs} blobs, ${backups} backups among them`
}

function present(context: Context, offsite: Offsite): void {
  if (context.json) {
    context.print(offsite)
    return
  }
  if (offsite.place === null) {
    context.say('No off-site store is configured: backups are lost with this machine. Set GAMEKEEPER_OFFSITE.')
    return
  }
  const ago = (time: string | null) => (time === null ? '-' : formatAgo(time, context.now()))
  const { mirror, surplus, lastRun, progress } = offsite
  const fields: Record<string, string> = {
    Place: offsite.place,
    Activity: offsite.activity === 'waiting' ? `waiting, next attempt ${ago(offsite.nextRunAt)}` : offsite.activity,
    Problem: offsite.problem ?? '-',
    Unsent: `${offsite.pendingBackups} backups, ${formatSize(offsite.pendingBytes)}`,
    Oldest: ago(offsite.oldestPendingAt),
    Holds: mirror ? `${mirror.backups} backups, ${formatSize(mirror.bytes)}` : '-',
    'Last run': lastRun ? `${ago(lastRun.endedAt)}, ${lastRun.error ? 'failed' : formatSize(lastRun.sentBytes)}` : '-',
  }
  if (progress) fields.Progress = formatProgress('', progress, 0).trim() || '-'
  if (surplus) fields.Surplus = describeSurplus(surplus)
  if (offsite.isAppendOnly) fields['Append-only'] = 'yes'
  context.say(formatFields(fields, context.paint))
}
