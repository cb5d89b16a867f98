import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { ConfigFault, readConfig } from './config.ts'

test('everything has a default, and an empty variable is an absent one', () => {
  const config = readConfig({ GAMEKEEPER_PORT: '', PATH: '/bin' })
  assert.equal(config.host, '127.0.0.1')
  assert.equal(config.port, 8080)
  assert.equal(config.dataDir, resolve('data'))
  assert.equal(config.requestsPerMinute, 6000)
  assert.equal(config.activityRetentionDays, 365)
  assert.deepEqual(config.trustedProxies, [])
})

test('every fault is named at once, and what was meant to do something is not ignored', () => {
  const env = {
    GAMEKEEPER_HOST: 'not a host',
    GAMEKEEPER_PORT: '65536',
    GAMEKEEPER_ADMIN_TOKEN: 'secret',
    GAMEKEEPER_PUBLIC_URL: 'ftp://x',
    GAMEKEEPER_DATABASE_URL: 'mysql://x',
    GAMEKEEPER_LOG_LEVEL: 'loud',
    GAMEKEEPER_LOG_FORMAT: 'neat',
    GAMEKEEPER_RATE_LIMIT: '-1',
    GAMEKEEPER_TRUSTED_PROXIES: '10.0.0.0/33, nobody',
    GAMEKEEPER_CORS_ORIGINS: 'https://panel.example.org/, *',
    GAMEKEEPER_ACTIVITY_RETENTION_DAYS: '0',
    GAMEKEEPER_SECRET: 'abc',
    GAMEKEEPER_OFFSITE: 'https://bucket',
    GAMEKEEPER_OFFSITE_KEYS_FILE: '/nowhere',
    GAMEKEEPER_PROT: '1',
  }
  assert.throws(
    () => readConfig(env),
    (error) => {
      assert.ok(error instanceof ConfigFault)
      assert.equal(error.faults.length, Object.keys(env).length)
      for (const name of Object.keys(env)) assert.match(error.message, new RegExp(`${name} `))
      assert.doesNotMatch(error.message, /secret\b/, 'a value may be a secret')
      return true
    },
  )
})

test('values are read', () => {
  const config = readConfig({
    GAMEKEEPER_HOST: '::',
    GAMEKEEPER_PORT: '0',
    GAMEKEEPER_PUBLIC_URL: 'https://games.example.org/',
    GAMEKEEPER_TRUSTED_PROXIES: '10.0.0.0/8, ::1',
    GAMEKEEPER_SECRET: 'ab'.repeat(32),
    GAMEKEEPER_URL: 'http://elsewhere',
  })
  assert.equal(config.publicUrl, 'https://games.example.org')
  assert.deepEqual(config.trustedProxies, ['10.0.0.0/8', '::1'])
  assert.equal(config.secret?.length, 32)
})

test('a bucket needs keys: those of the file, else those of the environment', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-config-'))
  const file = join(folder, 'keys')
  writeFileSync(file, 'id-of-file\nsecret-of-file\n')
  const offsite = { GAMEKEEPER_OFFSITE: 's3://games/castle?endpoint=https://s3.example.org' }
  const env = { ...offsite, AWS_ACCESS_KEY_ID: 'id-of-env', AWS_SECRET_ACCESS_KEY: 'secret-of-env' }
  assert.equal(readConfig(env).offsite?.endpoint, 'https://s3.example.org')
  assert.equal(readConfig(env).offsiteKeys?.accessKeyId, 'id-of-env')
  const both = readConfig({ ...env, GAMEKEEPER_OFFSITE_KEYS_FILE: file })
  assert.equal(both.offsiteKeys?.secretAccessKey, 'secret-of-file')
  assert.deepEqual(both.keyFiles, [file], 'hidden from games')
  assert.throws(() => readConfig(offsite), /GAMEKEEPER_OFFSITE needs keys: set AWS_ACCESS_KEY_ID and/)
  const spaced = { ...env, AWS_ACCESS_KEY_ID: ' id-of-env\r\n', AWS_SECRET_ACCESS_KEY: 'secret-of-env \n' }
  assert.deepEqual(readConfig(spaced).offsiteKeys, readConfig(env).offsiteKeys)
  const broken = { ...env, AWS_SECRET_ACCESS_KEY: 'secret\nof-env' }
  assert.throws(() => readConfig(broken), /AWS_SECRET_ACCESS_KEY must have no space and no line break in it$/)
  assert.doesNotThrow(() => readConfig({ ...broken, GAMEKEEPER_OFFSITE: '' }), 'they are not ours')
  assert.doesNotThrow(() => readConfig({ ...broken, GAMEKEEPER_OFFSITE_KEYS_FILE: file }))
  writeFileSync(file, 'id-of-file')
  assert.throws(
    () => readConfig({ ...offsite, GAMEKEEPER_OFFSITE_KEYS_FILE: file }),
    (error) => {
      assert.ok(error instanceof ConfigFault)
      assert.deepEqual(error.faults, [
        'GAMEKEEPER_OFFSITE_KEYS_FILE names a file that must hold two lines, the id of the key and its secret, or a section as in ~/.aws/credentials',
      ])
      return true
    },
  )
  rmSync(folder, { recursive: true })
})

test('origins are those that a browser sends, or any', () => {
  const read = (text: string) => readConfig({ GAMEKEEPER_CORS_ORIGINS: text }).corsOrigins
  assert.deepEqual(readConfig({}).corsOrigins, [])
  assert.deepEqual(read('*'), ['*'])
  assert.deepEqual(read('https://a.example.org, http://[::1]:5173'), ['https://a.example.org', 'http://[::1]:5173'])
  const wrong = [
    'a.example.org',
    'https://a.example.org/',
    'https://a.example.org:443',
    'null',
    'https://A.example.org',
  ]
  assert.throws(
    () => read([...wrong, 'https://fine.example.org'].join(',')),
    (error) => {
      assert.ok(error instanceof ConfigFault)
      for (const each of wrong) assert.ok(error.message.includes(JSON.stringify(each)), each)
      assert.ok(!error.message.includes('fine'))
      return true
    },
  )
})

test('what stays on the disk is a size or a number of days, and needs a place for the rest', () => {
  const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' }
  const env = { ...keys, GAMEKEEPER_OFFSITE: 's3://games/castle' }
  const keep = (text: string) => readConfig({ ...env, GAMEKEEPER_KEEP_LOCAL: text }).keepLocal
  assert.equal(readConfig(env).keepLocal, null)
  assert.deepEqual(keep('30d'), { ms: 30 * 24 * 3600_000 })
  assert.deepEqual(keep('200GB'), { bytes: 200_000_000_000 })
  assert.deepEqual(keep('1.5GiB'), { bytes: 1.5 * 2 ** 30 })
  assert.deepEqual(keep('0'), { bytes: 0 })
  for (const text of ['a lot', '30days', '-1', '2w'])
    assert.throws(() => keep(text), /GAMEKEEPER_KEEP_LOCAL must be a size such as 200GB, or a number of days/)
  assert.throws(() => readConfig({ GAMEKEEPER_KEEP_LOCAL: '30d' }), /GAMEKEEPER_KEEP_LOCAL needs GAMEKEEPER_OFFSITE/)
})
