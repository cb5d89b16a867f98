#!/usr/bin/env node
// Runs the command line on the Node that npm installed with us, whichever Node started this file.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const main = new URL('../src/cli/main.ts', import.meta.url)
const ownNode = fileURLToPath(new URL('../node_modules/node/bin/node', import.meta.url))

if (Number(process.versions.node.split('.')[0]) >= 26) {
  await import(main.href)
} else if (existsSync(ownNode)) {
  const child = spawn(ownNode, [fileURLToPath(main), ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (signal === 'SIGINT' ? 2 : 15)
  })
} else {
  console.error(
    `gamekeeper needs Node 26 or later and this is ${process.version}. Run "npm ci" first: it brings its own.`,
  )
  process.exitCode = 1
}
