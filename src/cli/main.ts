import { runCli } from './cli.ts'

const interrupted = new AbortController()
const argv = process.argv.slice(2)
// The service stops in its own way.
if (argv[0] !== 'serve') process.on('SIGINT', () => interrupted.abort())
// Whoever reads what we print may stop reading: that is no fault of theirs or ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

const { stdin, stdout, stderr, env } = process
process.exitCode = await runCli(argv, { stdin, stdout, stderr, env, signal: interrupted.signal })
