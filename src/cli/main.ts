import { runCli } from './cli.ts'

const interrupted = new AbortController()
const argv = process.argv.slice(2)
// The service stops in its own way.
const isService = argv[0] === 'serve'
if (!isService) process.on('SIGINT', () => interrupted.abort())
// Whoever reads what we print may stop reading: that is no fault of theirs or ours. A command has nothing more to do
// then, unless what it prints is the point of it; the service goes on.
const mustBeRead = argv[0] === 'token' && argv[1] === 'rescue'
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // EIO: a terminal that was closed.
  if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error
  if (!isService && !mustBeRead) process.exit(0)
})

const { stdin, stdout, stderr, env } = process
process.exitCode = await runCli(argv, { stdin, stdout, stderr, env, signal: interrupted.signal })
