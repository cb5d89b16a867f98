#!/usr/bin/env node
// Runs the command line on the Node that npm installed with us, whichever Node started this file: from source in a
// checkout, compiled in the package, where Node refuses TypeScript.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import nodeModule, { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const source = new URL('../src/cli/main.ts', import.meta.url)
const main = existsSync(source) ? source : new URL('../dist/cli/main.js', import.meta.url)
const ownNode = findOwnNode()
// What Node has compiled of the program, and made of its TypeScript, is kept beside the packages that npm has installed: it starts in
// half the time, and its threads, which look for it there, in a third. Whoever may write there may change the packages as well; where we
// may not, nothing is kept.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url))

if (Number(process.versions.node.split('.')[0]) >= 26) {
  // What was imported earlier would not be kept.
  nodeModule.enableCompileCache(process.env.NODE_COMPILE_CACHE)
  await import(main.href)
} else if (ownNode !== undefined) {
  const child = spawn(ownNode, [fileURLToPath(main), ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (signal === 'SIGINT' ? 2 : 15)
  })
} else {
  console.error(
    `gamekeeper needs Node 26 or later and this is ${process.version}. npm brings one, unless it was told to run no ` +
      'scripts: "npm ci" in a checkout, "npm rebuild node" where it was installed as a package.',
  )
  process.exitCode = 1
}

/** Below us in a checkout, beside us in somebody's project: npm decides. */
function findOwnNode() {
  try {
    const folder = createRequire(import.meta.url).resolve('node/package.json')
    const path = join(folder, '../bin/node')
    return existsSync(path) ? path : undefined
  } catch {
    return undefined
  }
}
