// A real S3 server on a temporary folder: what is in a bucket is a file below it.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { PutBucketPolicyCommand } from '@aws-sdk/client-s3'
import { TOOLS } from '../../scripts/tools.ts'
import { s3Address } from '../../src/blobs/s3/address.ts'
import { createRequests } from '../../src/blobs/s3/requests.ts'
import type { S3Keys, S3Place } from '../../src/contract/offsite-place.ts'
import { freePort, temporaryDirectory } from './daemons.ts'
import { until } from './until.ts'

const [PROGRAM] = TOOLS.versitygw.files

export interface VersityGw {
  url: string
  /** Of the process that runs now. */
  readonly pid: number
  /** Of the owner, who may do everything. */
  keys: S3Keys
  bucket: string
  /** Where the blobs of the bucket are files. */
  dir: string
  /** Below a prefix of the bucket; by another way if `url` says so. */
  place(prefix: string, url?: string): S3Place
  /** Somebody who may do only what a policy of the bucket allows. */
  addUser(name: string): Promise<S3Keys>
  /** These, such as `s3:GetObject`, and nothing else; nobody but the owner and this one may do anything from then on. */
  allow(user: S3Keys, ...actions: string[]): Promise<void>
  /** Ends it at once, as a crash would; what was stored stays. */
  kill(): Promise<void>
  /** Again, at the same address, with what was stored. */
  start(): Promise<void>
  stop(): Promise<void>
}

export interface VersityGwOptions {
  region?: string
  /** Where it has its files; a temporary folder by default. */
  base?: string
  /** Further ones of the program itself. */
  args?: readonly string[]
  /** A bucket may keep older versions of what is in it, and lock them. */
  hasVersions?: boolean
}

export async function startVersityGw(options: VersityGwOptions = {}): Promise<VersityGw> {
  const directory = temporaryDirectory('versitygw', options.base)
  const [root, users] = [join(directory.path, 'root'), join(directory.path, 'users')]
  const bucket = 'games'
  for (const dir of [join(root, bucket), users]) mkdirSync(dir, { recursive: true })
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const keys = { accessKeyId: 'owner-of-tests', secretAccessKey: 'secret-of-tests', sessionToken: null }
  const region = options.region ?? 'us-east-1'
  const own = ['--access', keys.accessKeyId, '--secret', keys.secretAccessKey]
  const further = options.args ?? []
  const listen = ['--region', region, '--port', `127.0.0.1:${port}`]
  const versions = join(directory.path, 'versions')
  if (options.hasVersions) mkdirSync(versions)
  const kept = options.hasVersions ? ['--versioning-dir', versions] : []
  const args = [...own, ...listen, '--iam-dir', users, '--quiet', ...further, 'posix', ...kept, root]
  let child: ReturnType<typeof spawn> | undefined

  async function start(): Promise<void> {
    const started = spawn(PROGRAM, args, { stdio: 'ignore' })
    child = started
    await until(async () => {
      if (started.exitCode !== null) throw new Error(`versitygw ended with ${started.exitCode}`)
      return await answers(port)
    })
  }

  async function kill(): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  const place: VersityGw['place'] = (prefix, by = url) => ({ bucket, prefix, endpoint: by, region: null })

  await start()
  return {
    url,
    get pid() {
      return child?.pid ?? 0
    },
    keys,
    bucket,
    dir: join(root, bucket),
    place,
    async addUser(name) {
      const secret = `secret-of-${name}`
      const user = ['create-user', '--access', name, '--secret', secret, '--role', 'user']
      const { status, stdout, stderr } = spawnSync(
        PROGRAM,
        ['admin', ...own, '--region', region, '--endpoint-url', url, ...user],
        {
          encoding: 'utf8',
        },
      )
      if (status !== 0) throw new Error(`versitygw made no user: ${stdout}${stderr}`)
      return { accessKeyId: name, secretAccessKey: secret, sessionToken: null }
    },
    async allow({ accessKeyId }, ...actions) {
      const statements = actions.map((Action) => ({
        Effect: 'Allow',
        Principal: { AWS: [accessKeyId] },
        Action,
        Resource: `arn:aws:s3:::${bucket}${/Bucket/.test(Action) ? '' : '/*'}`,
      }))
      const Policy = JSON.stringify({ Version: '2012-10-17', Statement: statements })
      using requests = createRequests({ ...s3Address(place(''), keys), region })
      await requests.client.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy }))
    },
    kill,
    start,
    async stop() {
      await kill()
      directory.remove()
    },
  }
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
