import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatS3Place, PlaceFault, parseS3Keys, parseS3Place, s3KeysOf } from './offsite-place.ts'

const fault = (read: () => unknown): string => {
  try {
    read()
  } catch (error) {
    assert.ok(error instanceof PlaceFault)
    return error.message
  }
  return assert.fail('nothing was wrong with it')
}

test('a bucket is named with its prefix, its endpoint and its region, and the same again when it is shown', () => {
  const places = {
    's3://games': { bucket: 'games', prefix: '', endpoint: null, region: null },
    's3://games/one/two?region=eu-central-1': {
      bucket: 'games',
      prefix: 'one/two',
      endpoint: null,
      region: 'eu-central-1',
    },
    's3://My_Bucket.1/p?endpoint=https://s3.example.org:9000': {
      bucket: 'My_Bucket.1',
      prefix: 'p',
      endpoint: 'https://s3.example.org:9000',
      region: null,
    },
  }
  for (const [text, place] of Object.entries(places)) {
    assert.deepEqual(parseS3Place(text), place)
    assert.equal(formatS3Place(place), text)
  }
  assert.equal(parseS3Place('s3://games/one/?endpoint=s3.example.org/').endpoint, 'https://s3.example.org')
  assert.equal(parseS3Place('s3://games/one/').prefix, 'one')
})

test('what is wrong with a bucket is said in a sentence, without its secrets', () => {
  const wrong: Record<string, RegExp> = {
    'https://games.s3.amazonaws.com': /must have the form s3:\/\/BUCKET\/PREFIX/,
    's3:games': /must have the form/,
    's3://': /must have the form/,
    's3://a/p': /3 to 63/,
    's3://AKIAKEY:hidden@games/p': /must not contain keys/,
    's3://localhost:9000/games': /the host and its port are the endpoint/,
    's3://games/a//b': /has a prefix/,
    's3://games/a/%2e%2e/b c': /has a prefix/,
    's3://games/p?endpont=https://x.org': /the unknown parameter "endpont"/,
    's3://games/p?endpoint=ftp://x.org': /has an endpoint that is not an address/,
    's3://games/p?endpoint=https://x.org/games': /has an endpoint with a path/,
    's3://games/p?endpoint=https://games.x.org': /begins with the bucket/,
    's3://games/p?region=Frankfurt am Main': /has a region that is none/,
    's3://games/p#x': /no fragment/,
  }
  for (const [text, expected] of Object.entries(wrong)) {
    const message = fault(() => parseS3Place(text))
    assert.match(message, expected, text)
    assert.doesNotMatch(message, /hidden/)
  }
})

test('keys are two lines, or a section as AWS writes it', () => {
  const keys = { accessKeyId: 'AKIA1', secretAccessKey: 'a/b+c=', sessionToken: null }
  assert.deepEqual(parseS3Keys('AKIA1\na/b+c=\n'), keys)
  assert.deepEqual(parseS3Keys('# ours\r\n\r\nAKIA1\r\na/b+c=\r\n'), keys)
  assert.deepEqual(parseS3Keys('AKIA1\na/b+c=\ntoken=='), { ...keys, sessionToken: 'token==' })
  const section = 'aws_access_key_id = AKIA1\naws_secret_access_key=a/b+c=\n'
  assert.deepEqual(parseS3Keys(section), keys)
  assert.deepEqual(parseS3Keys(`[only]\n${section}`), keys)
  assert.deepEqual(parseS3Keys(`[other]\naws_access_key_id=X\n[default]\n${section}aws_session_token = t`), {
    ...keys,
    sessionToken: 't',
  })
})

test('keys that are incomplete are refused without being repeated', () => {
  const wrong = {
    '': /two lines/,
    AKIAHIDDEN: /two lines/,
    'AKIAHIDDEN hidden': /two lines/,
    'a\nb\nc\nd': /two lines/,
    '[default]\naws_access_key_id = AKIAHIDDEN': /two lines/,
    '[a]\naws_access_key_id = AKIAHIDDEN\n[b]\n': /several sections/,
  }
  for (const [text, expected] of Object.entries(wrong)) {
    const message = fault(() => parseS3Keys(text))
    assert.match(message, expected, text)
    assert.doesNotMatch(message, /HIDDEN/i)
  }
})

test('the environment has keys as the tools of AWS read them, both or none', () => {
  const both = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' }
  assert.deepEqual(s3KeysOf(both), { accessKeyId: 'a', secretAccessKey: 'b', sessionToken: null })
  assert.equal(s3KeysOf({ ...both, AWS_SESSION_TOKEN: 't' })?.sessionToken, 't')
  assert.equal(s3KeysOf({ AWS_ACCESS_KEY_ID: 'a' }), null)
})
