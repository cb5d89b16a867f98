// `gamekeeper sign-in`
import { command, type Family } from '../command.ts'
import { formatTime } from '../units.ts'

const main = command({
  summary: 'Print a link that signs in to the panel once',
  description: 'It signs in with your token, once and within 15 minutes. Only the link is printed to standard output.',
  args: [],
  options: {},
  examples: ['gamekeeper sign-in'],
  async run(context) {
    const link = await context.client().session.createLink({ signal: context.io.signal })
    if (context.json) context.print(link)
    context.note(`It works once, until ${formatTime(link.expiresAt)}:`)
    context.say(link.url)
    return undefined
  },
})

export const signIn: Family = { main }
