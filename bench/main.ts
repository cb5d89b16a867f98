// `npm run bench -- NAME`: one file a benchmark; each prints its table and says whether it holds.
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { watchHost } from './support/undisturbed.ts'

const OWN = ['main', 'measure', 'bare-http', 'game-tree', 'many-files']
const here = dirname(fileURLToPath(import.meta.url))
const names = readdirSync(here)
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  .map((file) => file.slice(0, -3))
  .filter((name) => !OWN.includes(name))

const [name = ''] = process.argv.slice(2)
if (!names.includes(name)) {
  console.log(`npm run bench -- NAME\n\n${names.map((known) => `  ${known}`).join('\n')}`)
  process.exitCode = name === '' ? 0 : 2
} else {
  const { run } = (await import(`./${name}.ts`)) as { run(): Promise<boolean> }
  const stolenShare = watchHost()
  if (!(await run())) process.exitCode = 1
  const percent = (stolenShare() * 100).toFixed(1)
  console.log(`meanwhile the host of this machine gave ${percent} % of its processors to others`)
}
