import { mkdirSync, mkdtempSync, renameSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { makeTree } from './game-tree.ts'
import { cpuSeconds } from './measure.ts'
import { changeTree } from './support/change-tree.ts'
import { heat } from './support/backup-peers.ts'
import { startBackupService } from './support/backup-service.ts'
import { startCountingS3 } from './support/offsite/counting-s3.ts'
import { backUpAndSend, restoreElsewhere } from './support/offsite/peers.ts'

const base = mkdtempSync('/tmp/offbench/r-')
const s3 = await startCountingS3(base)
try {
  const tree = join(base, 'tree')
  makeTree(tree)
  const dataDir = join(base, 'data')
  mkdirSync(dataDir)
  const place = s3.placeOf('x/ours')
  const settings = { ...s3.env, GAMEKEEPER_OFFSITE: place }
  const running = await startBackupService(dataDir, settings)
  const { id: serverId } = await running.client.servers.create({ name: 'Bench' })
  const files = running.filesOf(serverId)
  rmdirSync(files)
  renameSync(tree, files)
  const c = cpuSeconds(running.service.pid),
    v = cpuSeconds(s3.pid)
  let sent = await backUpAndSend(running, serverId)
  console.log('first', sent, 'cpu own', cpuSeconds(running.service.pid) - c, 'server', cpuSeconds(s3.pid) - v)
  changeTree({ root: files, seed: 100, files: 40, bytes: 15_000_000, smallFiles: 0 })
  sent = await backUpAndSend(running, serverId)
  console.log('changed', sent)
  const { id: localId } = await running.client.servers.create({ name: 'Local' })
  const c2 = cpuSeconds(running.service.pid)
  console.log(
    'local restore',
    await running.restore(serverId, sent.backupId, localId),
    'cpu',
    cpuSeconds(running.service.pid) - c2,
  )
  await running.stop()
  heat(s3.dirOf('x'))
  for (let i = 0; i < Number(process.env.TIMES ?? 2); i++) {
    const dir = join(base, `restored-${i}`)
    const v = cpuSeconds(s3.pid)
    const own = process.env.PROF ? { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=/tmp/offbench/prof` } : {}
    const r = await restoreElsewhere({
      s3,
      settings: { ...settings, ...own },
      place,
      dataDir: dir,
      serverId,
      backupId: sent.backupId,
    })
    console.log(
      'restore',
      r.restore.seconds,
      'cpu',
      r.restore.cpu,
      'server',
      cpuSeconds(s3.pid) - v,
      JSON.stringify(r.parts),
      JSON.stringify(r.restore.traffic),
    )
    rmSync(dir, { recursive: true, force: true })
  }
} finally {
  await s3.stop()
  rmSync(base, { recursive: true, force: true })
}
