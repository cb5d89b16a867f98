// A real S3 server behind a proxy that makes trouble, for as long as a suite runs.
import { after, afterEach, before } from 'node:test'
import { type S3Proxy, startS3Proxy } from './s3-proxy.ts'
import { startVersityGw, type VersityGw } from './versitygw.ts'

export interface TroubledS3 {
  readonly gateway: VersityGw
  /** Without trouble again, and with nothing seen, before each test. */
  readonly proxy: S3Proxy
}

/** To be called in a suite. What it gives can be used from `before` on. */
export function useTroubledS3(options: { region?: string } = {}): TroubledS3 {
  let gateway: VersityGw
  let proxy: S3Proxy
  before(async () => {
    gateway = await startVersityGw(options)
    proxy = await startS3Proxy(gateway.url)
  })
  after(async () => {
    await proxy.stop()
    await gateway.stop()
  })
  afterEach(() => {
    proxy.trouble = () => undefined
    proxy.seen.length = 0
  })
  return {
    get gateway() {
      return gateway
    },
    get proxy() {
      return proxy
    },
  }
}
