import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { userInfo } from 'node:os'
import { test } from 'node:test'

test('the user that Gamekeeper connects as is, by default, the user that runs it, whatever the environment says', () => {
  const databaseModule = new URL('./database.ts', import.meta.url).href
  const { USER: _user, PGUSER: _pgUser, ...env } = process.env
  const output = execFileSync(
    process.execPath,
    ['--import', databaseModule, '--print', "require('pg').defaults.user"],
    {
      env,
      encoding: 'utf8',
    },
  )
  assert.equal(output.trim(), userInfo().username)
})
