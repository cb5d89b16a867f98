import { execSync } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { copyBlob } from '../src/blobs/copy-blob.ts'
import { openBlobStore } from '../src/blobs/open-store.ts'
import { examine } from '../src/blobs/s3/examine.ts'
import { parseS3Place } from '../src/contract/offsite-place.ts'
import { forEachAtOnce } from '../src/kit/work-group.ts'
import { cpuSeconds } from './measure.ts'
import { startCountingS3 } from './support/offsite/counting-s3.ts'

const base = mkdtempSync('/tmp/offbench/m-')
const s3 = await startCountingS3(base)
const pid = Number(
  execSync(`pgrep -f ${s3.url.split(':')[2]}`)
    .toString()
    .split('\n')[0],
)
try {
  const N = Number(process.env.N ?? 24),
    AT = Number(process.env.AT ?? 4)
  const dir = join(base, 'local')
  mkdirSync(join(dir, 'packs'), { recursive: true })
  const buf = Buffer.alloc(32 * 2 ** 20)
  for (let i = 0; i < N; i++) writeFileSync(join(dir, 'packs', `p${i}`), randomFillSync(buf))
  const local = await openBlobStore({ kind: 'local', dir }, { clear: false })
  const { address } = await examine(
    parseS3Place(s3.placeOf('x')),
    { accessKeyId: s3.env.AWS_ACCESS_KEY_ID!, secretAccessKey: s3.env.AWS_SECRET_ACCESS_KEY!, sessionToken: null },
    { isAppendOnly: false, measureBytes: 0 },
  )
  const mirror = await openBlobStore(address!, { clear: false })
  const names = Array.from({ length: N }, (_, i) => `packs/p${i}`)
  const measure = async (what: string, work: () => Promise<void>) => {
    const c = process.cpuUsage(),
      b = performance.now(),
      v = cpuSeconds(pid)
    await work()
    const s = (performance.now() - b) / 1000,
      u = process.cpuUsage(c)
    console.log(
      what,
      s.toFixed(2),
      's',
      ((N * 32) / s).toFixed(0),
      'MiB/s; cpu own',
      (u.user / 1e6).toFixed(2),
      'user',
      (u.system / 1e6).toFixed(2),
      'sys; server',
      (cpuSeconds(pid) - v).toFixed(2),
      'rss',
      (process.memoryUsage.rss() / 2 ** 20).toFixed(0),
    )
  }
  console.log('rss before', (process.memoryUsage.rss() / 2 ** 20).toFixed(0))
  await measure('send', () =>
    forEachAtOnce(names, AT, (name) =>
      copyBlob(local, mirror, { name, sizeBytes: 32 * 2 ** 20 }, { pace: async () => {} }),
    ),
  )
  const slots = Array.from({ length: AT }, () => Buffer.from(new SharedArrayBuffer(32 * 2 ** 20)))
  await measure('fetch', () =>
    forEachAtOnce(names, AT, async (name) => {
      const slot = slots.pop()!
      await mirror.get(name, { offset: 0, length: 32 * 2 ** 20 }, slot)
      slots.push(slot)
    }),
  )
} finally {
  await s3.stop()
  rmSync(base, { recursive: true, force: true })
}
