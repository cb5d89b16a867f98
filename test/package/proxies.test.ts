// The samples for reverse proxies in docs/operating.md, as far as the proxies are at hand.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROOT } from '../architecture/sources.ts'
import { makeCertificate } from '../support/certificates.ts'
import { needs } from '../support/needs.ts'

test('docs/operating.md: nginx takes the sample', needs('nginx'), () => {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-nginx-'))
  const page = readFileSync(join(ROOT, 'docs/operating.md'), 'utf8')
  const [, sample = ''] = /```nginx\n(.*?)```/s.exec(page) ?? []
  const { cert, key } = makeCertificate(folder, 'games.example.org')
  const local = sample.replace(/\S+fullchain\.pem/, cert).replace(/\S+privkey\.pem/, key)
  assert.notEqual(local, sample)
  writeFileSync(join(folder, 'nginx.conf'), `pid ${folder}/pid;\nevents {}\nhttp {\naccess_log off;\n${local}}\n`)
  const { status, stderr } = spawnSync('nginx', ['-t', '-e', 'stderr', '-c', join(folder, 'nginx.conf')], {
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  assert.doesNotMatch(stderr, /\[warn\]/)
  rmSync(folder, { recursive: true })
})
