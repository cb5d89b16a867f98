// Signals, sent as a supervisor or a shell sends them: to the process that was started, which need not be the service.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from './support/until.ts'

const ROOT = join(import.meta.dirname, '..')

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Whether the service itself is gone after the signal, with its lock: who was started may have left it behind. */
async function stopsWith(command: readonly string[], signal: NodeJS.Signals, to: 'leader' | 'group'): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gamekeeper-test-'))
  const clean = Object.entries(process.env).filter(([name]) => !/^(?:GAMEKEEPER_|npm_|NODE_TEST)/.test(name))
  const [program = '', ...args] = command
  const child = spawn(program, args, {
    cwd: ROOT,
    detached: true,
    env: {
      ...Object.fromEntries(clean),
      GAMEKEEPER_PORT: '0',
      GAMEKEEPER_DATA_DIR: dataDir,
      GAMEKEEPER_LOG_LEVEL: 'fatal',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const pid = child.pid ?? 0
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  try {
    const url = await until(async () => /http:\/\/[\d.]+:\d+/.exec(said)?.[0])
    assert.equal((await fetch(`${url}/healthz`)).status, 200)
    const service = Number(readFileSync(join(dataDir, 'gamekeeper.pid'), 'utf8'))
    const exited = once(child, 'exit')
    process.kill(to === 'group' ? -pid : pid, signal)
    await exited
    await until(async () => !isAlive(service))
    await assert.rejects(fetch(`${url}/healthz`))
  } finally {
    if (isAlive(-pid)) process.kill(-pid, 'SIGKILL')
    await rm(dataDir, { recursive: true, force: true })
  }
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  for (const to of ['leader', 'group'] as const) {
    test(`${signal} sent to npm start reaches the service: to its ${to}`, () => stopsWith(['npm', 'start'], signal, to))
  }
}

test('with npx gamekeeper serve SIGTERM and Ctrl-C do', async () => {
  const command = ['npx', 'gamekeeper', 'serve']
  await stopsWith(command, 'SIGTERM', 'leader')
  await stopsWith(command, 'SIGINT', 'group')
})
