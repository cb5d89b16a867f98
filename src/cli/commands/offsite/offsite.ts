// `gamekeeper offsite test`
import { command, type Family } from '../../command.ts'
import { EXIT } from '../../exit-codes.ts'
import { formatFinding } from '../../findings.ts'

const test = command({
  summary: 'Try everything that a mirror needs on its bucket',
  description:
    'Runs on the machine of the service, with its settings: GAMEKEEPER_OFFSITE and the keys. Writes, reads, lists, tries\n' +
    'to overwrite, deletes, measures the speed, and says what is missing. Safe while the service runs. Exits with 0 when\n' +
    'nothing fails, warnings included, and with 1 otherwise.',
  args: [],
  options: {},
  examples: ['gamekeeper offsite test'],
  async run(context) {
    // Only now: other commands do not wait for the service to be read from disk.
    const { testOffsite } = await import('../serve.ts')
    const { findings } = await testOffsite(context.environment.all, (finding) =>
      context.say(formatFinding(context, finding)),
    )
    const usable = findings.every(({ status }) => status !== 'fail')
    if (context.json) context.print({ usable, findings })
    return usable ? EXIT.ok : EXIT.failed
  },
})

export const offsite: Family = { subcommands: { test } }
