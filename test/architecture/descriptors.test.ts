// A number of a descriptor says nothing of whose it is, so only `src/kit/files/descriptor.ts` closes one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Source, sourcesUnder } from './sources.ts'

const OWNER = 'src/kit/files/descriptor.ts'
/** May import nothing of ours, and is a process that does one thing for one person. */
const isCli = (path: string) => path.startsWith('src/cli/')
const isTest = (path: string) => /\.(?:test|testing|contract)\.ts$/.test(path)

const FROM_FS = /import\s*(?:type\s*)?\{([^}]*)\}\s*from\s*'(?:node:)?fs'/g
const WHOLE_FS = /import\s+(?:\*\s+as\s+)?\w+\s+from\s*'(?:node:)?fs'/
/** Open or close a number, or make a stream that closes it when it is destroyed. */
const RAW = ['open', 'openSync', 'close', 'closeSync', 'createReadStream', 'createWriteStream']

function faultsIn(sources: Source[]): string[] {
  return sources
    .filter(({ path }) => path !== OWNER && !isCli(path) && !isTest(path))
    .flatMap(({ path, text }) => {
      const names = [...text.matchAll(FROM_FS)].flatMap(([, list = '']) => list.split(',').map((name) => name.trim()))
      const raw = names.filter((name) => RAW.includes(name.split(' as ', 1)[0] ?? ''))
      return [
        ...raw.map((name) => `${path} has ${name}: descriptors are opened and closed by ${OWNER}`),
        ...(WHOLE_FS.test(text) ? [`${path} imports all of fs`] : []),
        ...(/\bautoClose\b/.test(text) ? [`${path} lends a descriptor to a stream`] : []),
      ]
    })
}

test('A descriptor has one owner, which closes it once', () => {
  assert.deepEqual(faultsIn(sourcesUnder('src')), [])
})

test('what opens, closes or lends a number would be found', () => {
  const source = (text: string) => faultsIn([{ path: 'src/x.ts', text }]).length
  assert.equal(source("import { closeSync, fstatSync } from 'node:fs'"), 1)
  assert.equal(source("import { open as openFile, read } from 'node:fs'"), 1)
  assert.equal(source("import {\n  type BigIntStats,\n  createReadStream,\n} from 'node:fs'"), 1)
  assert.equal(source("import fs from 'node:fs'"), 1)
  assert.equal(source("import * as fs from 'fs'"), 1)
  assert.equal(source("import { open } from 'node:fs/promises'"), 0)
  assert.equal(source("import { fstatSync, opendirSync } from 'node:fs'"), 0)
})

test('only src/kit/reset.ts resets a connection: Node alone would lose the descriptor of one that is just ending', () => {
  const users = [...sourcesUnder('src'), ...sourcesUnder('test')].filter(({ text }) => /\.resetAndDestroy\(/.test(text))
  assert.deepEqual(
    users.map(({ path }) => path),
    ['src/kit/reset.ts'],
  )
})
