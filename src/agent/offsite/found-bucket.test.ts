import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../backups/backups.testing.ts'
import { keepFound, readFound } from './found-bucket.ts'

const place = { bucket: 'games', prefix: 'castle', endpoint: 'https://s3.example.org', region: null }
const keys = { accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: null }
const where = { region: 'eu-1', addressing: 'host' as const }

test('what was found counts for the same place and the same keys, for an hour', (t) => {
  const path = join(temporaryFolder(t), 'bucket.json')
  assert.equal(readFound(path, { place, keys }), undefined)
  const before = Date.now()
  keepFound(path, { place, keys }, where)
  const { goodUntil = 0, ...found } = readFound(path, { place, keys }) ?? {}
  assert.deepEqual(found, where)
  assert.ok(goodUntil >= before + 3600_000 && goodUntil <= Date.now() + 3600_000)
  assert.equal(readFound(path, { place: { ...place, prefix: 'tower' }, keys }), undefined)
  assert.equal(readFound(path, { place, keys: { ...keys, secretAccessKey: 'another' } }), undefined)
})
