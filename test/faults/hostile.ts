// `npm run faults -- hostile [times] [--only name,name] [--engine sqlite|postgres]`: the attacks of test/hostile, that many
// times as large as in `npm test`, one file at a time.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { withPostgres } from './history/main.ts'

const OPTIONS = { only: { type: 'string', default: '*' }, engine: { type: 'string' } } as const

export async function playHostile(times: number, say: (line: string) => void, args: string[]): Promise<void> {
  const { values } = parseArgs({ args, allowPositionals: true, options: OPTIONS })
  const files = values.only.split(',').map((name) => `test/hostile/${name}.test.ts`)
  const { engine } = values
  if (engine !== undefined && engine !== 'sqlite' && engine !== 'postgres')
    throw new Error(`--engine is sqlite or postgres, not ${engine}`)
  say(`${files.join(', ')}, ${times} times as large as in npm test${engine ? `, on ${engine}` : ''}`)
  await withPostgres(async () => {
    const flags = ['--test', '--test-concurrency=1', '--test-reporter=spec']
    const child = spawn(process.execPath, [...flags, ...files], {
      stdio: 'inherit',
      env: {
        ...process.env,
        GAMEKEEPER_TEST_HOSTILE: String(times),
        ...(engine ? { GAMEKEEPER_TEST_HOSTILE_ENGINE: engine } : {}),
      },
    })
    const [code] = await once(child, 'exit')
    if (code !== 0) process.exitCode = 1
  })
}
