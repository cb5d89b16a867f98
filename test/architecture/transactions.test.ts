// On SQLite every other query waits for a transaction, and on PostgreSQL it may have to run again: so nothing in it may
// wait for a disk, a DNS provider or a timer.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Source, sourcesUnder } from './sources.ts'

/** The text between an opening parenthesis and the one that closes it. */
function balanced(text: string, from: number): string {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text[at] === '(') depth++
    else if (text[at] === ')' && --depth === 0) return text.slice(from, at + 1)
  }
  return text.slice(from)
}

const WORK = /\btransact\(|\.transaction\(\)\.execute\(/g
/** What lies outside of the database. A transaction is handed on as `trx`, so that an await without it is suspect too. */
const OUTSIDE = /\b(?:agent|providers?|dns|fetch|delay|setTimeout|readFile|writeFile|rename|unlink)\b[.(]/

function strangersIn({ path, text }: Source): string[] {
  return [...text.matchAll(WORK)].flatMap(({ index, 0: call }) => {
    const work = balanced(text, index + call.length - 1)
    return [...work.matchAll(/\bawait\s+/g)].flatMap(({ index: at, 0: word }) => {
      const rest = work.slice(at + word.length)
      const head = /^[^(\n]*/.exec(rest)?.[0] ?? ''
      const awaited = head + balanced(rest, head.length)
      const isDatabase = /\b(?:trx|db)\b/.test(awaited) || /^(?:sql\b|\w+\.execute)/.test(awaited)
      return OUTSIDE.test(awaited) || !isDatabase ? [`${path}: await ${awaited.split('\n')[0]}`] : []
    })
  })
}

test('Within a database transaction only the database is awaited.', () => {
  const sources = sourcesUnder('src/control').filter(({ path }) => !/\.(test|testing)\.ts$/.test(path))
  const transactions = sources.flatMap(({ text }) => [...text.matchAll(WORK)])
  assert.ok(transactions.length > 40)
  assert.deepEqual(sources.flatMap(strangersIn), [])
})

test('the test sees what is awaited in a transaction', () => {
  const inside = (work: string) => strangersIn({ path: 'x.ts', text: `transact(db, {}, async (trx) => { ${work} })` })
  assert.equal(inside('await agent.servers.hold({ serverId })').length, 1)
  assert.equal(inside('const page = await fetch(url)').length, 1)
  assert.equal(inside('await provider.apply(trx, zone)').length, 1)
  assert.deepEqual(inside('await lockServer(trx, serverId)'), [])
})
