// The command line in a test: as a process of its own, or in this one with somebody at a terminal.
import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { PassThrough, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { runCli } from '../../src/cli/cli.ts'
import { type Ran, ranOf } from './ran.ts'
import { until } from './until.ts'

export const BINARY = fileURLToPath(new URL('../../bin/gamekeeper.js', import.meta.url))

export interface RunOptions {
  env?: Record<string, string>
  cwd?: string
  /** The Node that starts it; the one that runs the tests unless told. */
  node?: string
}

export function startBinary(args: readonly string[], { env = {}, cwd, node = process.execPath }: RunOptions = {}) {
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GAMEKEEPER_')))
  return spawn(node, [BINARY, ...args], { env: { ...clean, ...env }, cwd, stdio: ['ignore', 'pipe', 'pipe'] })
}

export async function runBinary(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  return await ranOf(startBinary(args, options))
}

/** On a terminal of its own, which `script` of util-linux makes, as somebody sits at it. */
export function openTerminal(args: readonly string[], env: Record<string, string>) {
  const quoted = [process.execPath, BINARY, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
  const child = spawn('script', ['--quiet', '--flush', '--return', '--command', quoted, '/dev/null'], {
    env: { PATH: process.env.PATH, SHELL: '/bin/sh', TERM: 'xterm', HOME: tmpdir(), ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let seen = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    seen += text
  })
  return {
    type: (text: string) => void child.stdin.write(text),
    /** What was not seen before. */
    async sees(pattern: RegExp): Promise<void> {
      await until(async () => pattern.test(seen))
      seen = ''
    },
    ended: new Promise<number | null>((resolve) => void child.once('close', resolve)),
  }
}

/** With nobody at a terminal, as in a script. */
export const runPiped = (args: readonly string[], env: NodeJS.ProcessEnv) => runHere(args, env, [], false)

/** `answers` are typed as soon as a question is asked. */
export const runAtTerminal = (args: readonly string[], env: NodeJS.ProcessEnv, answers: readonly string[] = []) =>
  runHere(args, env, answers, true)

async function runHere(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  answers: readonly string[],
  isTTY: boolean,
): Promise<Ran> {
  const left = [...answers]
  const stdin = Object.assign(new PassThrough(), { isTTY })
  const [stdout, stderr] = [createSink(isTTY), createSink(isTTY)]
  stderr.onText = (text) => {
    if (/: $/.test(text) && left.length > 0) stdin.write(`${left.shift()}\n`)
  }
  const io = { stdin, stdout: stdout.stream, stderr: stderr.stream, env, signal: new AbortController().signal }
  const code = await runCli(args, io)
  return { code, stdout: stdout.text, stderr: stderr.text }
}

function createSink(isTTY: boolean) {
  const sink = {
    text: '',
    onText: (_text: string) => {},
    stream: Object.assign(
      new Writable({
        write(chunk, _encoding, done) {
          sink.text += chunk
          sink.onText(String(chunk))
          done()
        },
      }),
      { isTTY, columns: 100 },
    ),
  }
  return sink
}
