// The address at which this machine itself reaches what listens.
import type { AddressInfo } from 'node:net'

interface Reach {
  /** What it is known by elsewhere, if that was said. */
  publicUrl: string | null
  tls: object | null
}

const EVERYWHERE = ['0.0.0.0', '::']
export const isEverywhere = ({ address }: AddressInfo) => EVERYWHERE.includes(address)

export function urlOf(config: Reach, listening: AddressInfo): string {
  if (config.publicUrl) return config.publicUrl
  const { address, port, family } = listening
  const host = isEverywhere(listening) ? ownHost(config, family) : family === 'IPv6' ? `[${address}]` : address
  return `${config.tls ? 'https' : 'http'}://${host}:${port}`
}

/**
 * Every address of IPv4 is none of IPv6, where browsers look for `localhost` first: over plain HTTP anything on the machine could
 * listen there on the same port, and be what the link leads to. A certificate is for a name, and nobody else has it.
 */
function ownHost({ tls }: Reach, family: string): string {
  return tls || family === 'IPv6' ? 'localhost' : '127.0.0.1'
}
