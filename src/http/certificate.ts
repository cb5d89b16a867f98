// The certificate for TLS without a proxy: read at the start, and again whenever its files have changed.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Server } from 'node:https'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Logger } from 'pino'
import { StartFault } from '../kit/start-fault.ts'

export interface CertificateFiles {
  /** The certificate, followed by those between it and the root, in PEM. */
  certFile: string
  keyFile: string
}

interface Pair {
  cert: string
  key: string
  context: SecureContext
}

export interface Certificate {
  /** What new connections get. */
  current(): Pair
  /** Looks at the files until it is stopped. */
  follow(server: Server, log: Logger): () => void
}

/** Files are replaced by renames, by links and on mounts that tell nobody: looking finds them all. */
const LOOK_MS = 2000

/** Throws a sentence where the two files do not make a pair. */
export function openCertificate(files: CertificateFiles): Certificate {
  let pair = toPair(files, readAtStart(files.certFile, 'CERT'), readAtStart(files.keyFile, 'KEY'))

  return {
    current: () => pair,
    follow(server, log) {
      warnIfExpired(pair, log)
      let refused: { cert: string; key: string } | undefined
      const look = async () => {
        const read = await readBoth(files)
        if (read === undefined || isSame(read, pair) || isSame(read, refused)) return
        try {
          pair = toPair(files, read.cert, read.key)
          server.setSecureContext(pair)
          log.info({ expiresAt: expiryOf(pair).toISOString() }, 'the TLS certificate was replaced')
          warnIfExpired(pair, log)
        } catch (error) {
          // One of the two may be there already and the other not yet: the old pair serves until they fit.
          refused = read
          log.warn(`${(error as Error).message} The one before stays in use.`)
        }
      }
      let timer: NodeJS.Timeout
      let isStopped = false
      const lookAgain = () => {
        timer = setTimeout(() => void look().finally(() => isStopped || lookAgain()), LOOK_MS).unref()
      }
      lookAgain()
      return () => {
        isStopped = true
        clearTimeout(timer)
      }
    },
  }
}

function toPair({ certFile, keyFile }: CertificateFiles, cert: string, key: string): Pair {
  const certificate = attempt(() => new X509Certificate(cert), `${certFile} does not hold a certificate in PEM.`)
  const privateKey = attempt(
    () => createPrivateKey(key),
    `${keyFile} does not hold a private key in PEM without a passphrase.`,
  )
  if (!certificate.checkPrivateKey(privateKey))
    throw new StartFault(`The private key in ${keyFile} is not that of the certificate in ${certFile}.`)
  const context = attempt(
    () => createSecureContext({ cert, key }),
    `The certificate in ${certFile} cannot be used for TLS.`,
  )
  return { cert, key, context }
}

function attempt<T>(work: () => T, sentence: string): T {
  try {
    return work()
  } catch (error) {
    throw new StartFault(sentence, { cause: error })
  }
}

function readAtStart(path: string, setting: 'CERT' | 'KEY'): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new StartFault(`The file of GAMEKEEPER_TLS_${setting}, ${path}, cannot be read (${code}).`)
  }
}

/** Nothing while one of them is away, as in the middle of a replacement. */
async function readBoth({ certFile, keyFile }: CertificateFiles): Promise<{ cert: string; key: string } | undefined> {
  try {
    const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')])
    return { cert, key }
  } catch {
    return undefined
  }
}

const isSame = (one: { cert: string; key: string }, other: { cert: string; key: string } | undefined) =>
  one.cert === other?.cert && one.key === other.key

const expiryOf = ({ cert }: Pair) => new X509Certificate(cert).validToDate

function warnIfExpired(pair: Pair, log: Logger): void {
  const expiresAt = expiryOf(pair)
  if (expiresAt.getTime() < Date.now()) log.warn(`The TLS certificate has expired, at ${expiresAt.toISOString()}.`)
}
