// Certificates as they are in the world, made by openssl.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

export interface CertificateFiles {
  cert: string
  key: string
}

/** A self-signed certificate for `name`, in files that are called after it. */
export function makeCertificate(folder: string, name: string): CertificateFiles {
  const files = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) }
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name},DNS:localhost,IP:127.0.0.1`]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const args = ['req', '-x509', ...kind, ...subject, '-keyout', files.key, '-out', files.cert]
  const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`openssl failed: ${stderr}`)
  return files
}
