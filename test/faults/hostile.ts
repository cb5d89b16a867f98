// `npm run faults -- hostile [times] [--only name,name]`: the attacks of test/hostile, that many times as large as in
// `npm test`, one file at a time.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { withPostgres } from './history/main.ts'

export async function playHostile(times: number, say: (line: string) => void, args: string[]): Promise<void> {
  const { values } = parseArgs({ args, allowPositionals: true, options: { only: { type: 'string', default: '*' } } })
  const files = values.only.split(',').map((name) => `test/hostile/${name}.test.ts`)
  say(`${files.join(', ')}, ${times} times as large as in npm test`)
  await withPostgres(async () => {
    const flags = ['--test', '--test-concurrency=1', '--test-reporter=spec']
    const child = spawn(process.execPath, [...flags, ...files], {
      stdio: 'inherit',
      env: { ...process.env, GAMEKEEPER_TEST_HOSTILE: String(times) },
    })
    const [code] = await once(child, 'exit')
    if (code !== 0) process.exitCode = 1
  })
}
