// `npm test [-- files…]`: installs the tools that tests use, starts one PostgreSQL for the run, and runs node:test.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { startPostgres } from './postgres.ts'
import { installTools, missingTools } from './tools.ts'

const reporter = (name: string) => [`--test-reporter=${name}`, '--test-reporter-destination=stdout']
const say = (line: string) => console.log(line)
for (const { name, reason } of installTools(say)) {
  say(`test tools: ${name} ${reason}; its suites are ${process.env.CI ? 'failed' : 'skipped'}`)
  if (process.env.CI) process.exitCode = 1
}

if (process.exitCode !== 1) {
  const postgres = missingTools().includes('postgresql') ? undefined : await startPostgres()
  // For the tests, their threads and the services that they start.
  const poison = fileURLToPath(new URL('../test/support/descriptors/poison.ts', import.meta.url))
  const options = [process.env.NODE_OPTIONS, `--import=${pathToFileURL(poison)}`].filter(Boolean).join(' ')
  const env = {
    ...process.env,
    NODE_OPTIONS: options,
    // Hundreds of processes load the same modules: each module is stripped of its types and compiled once.
    NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)),
    ...(postgres ? { GAMEKEEPER_TEST_POSTGRES: postgres.url } : {}),
  }
  const patterns =
    process.argv.length > 2
      ? process.argv.slice(2)
      : ['src/**/*.test.ts', 'panel/src/**/*.test.ts', 'test/**/*.test.ts']
  const flags = ['--test', '--test-concurrency=3', '--test-timeout=600000', ...reporter('spec')]
  if (process.env.CI) flags.push(...reporter(new URL('refuse-skips.ts', import.meta.url).href))
  const child = spawn(process.execPath, [...flags, ...patterns], { stdio: 'inherit', env })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  const [code] = await once(child, 'exit')
  await postgres?.stop()
  process.exitCode = code ?? 1
}
