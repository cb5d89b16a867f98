// Asks one authoritative server what it answers, past every cache: the proof that a change is in the world.
import { randomInt } from 'node:crypto'
import * as dnsPacket from 'dns-packet'
import { exchangeTcp, exchangeUdp } from './exchange.ts'
import { type CallOptions, DnsProviderError, type Endpoint } from './provider.ts'
import { groupRecords, normaliseName, type RecordSet, type RecordType } from './records.ts'
import { fromAnswer } from './wire.ts'

const UDP_BYTES = 1232
const TIMEOUT_MS = 3_000

export interface AuthorityAnswer {
  /** `NOERROR`, `NXDOMAIN`, `REFUSED`, … as dns-packet names them. */
  rcode: string
  /** Whether the server says that the zone is its own. An answer without it proves nothing. */
  authoritative: boolean
  /** The set asked for, or null where the server has none of that name and type. Aliases are not followed. */
  recordSet: RecordSet | null
  overTcp: boolean
}

export interface AskOptions extends CallOptions {
  timeoutMs?: number
}

/** Over UDP, and over TCP where the answer does not fit. Fails with `unreachable` or, for nonsense, `server_error`. */
export async function askAuthority(
  server: Endpoint,
  name: string,
  type: RecordType,
  options: AskOptions = {},
): Promise<AuthorityAnswer> {
  const deadline = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS)
  const signal = options.signal ? AbortSignal.any([options.signal, deadline]) : deadline
  try {
    return await ask(server, normaliseName(name), type, signal)
  } catch (error) {
    if (options.signal?.aborted) throw options.signal.reason
    if (error instanceof DnsProviderError) throw error
    throw new DnsProviderError('unreachable', `${server.host}:${server.port} did not answer over DNS.`, {
      cause: error,
    })
  }
}

async function ask(server: Endpoint, name: string, type: RecordType, signal: AbortSignal): Promise<AuthorityAnswer> {
  const query = dnsPacket.encode({
    type: 'query',
    id: randomInt(65_536),
    flags: 0,
    questions: [{ name, type, class: 'IN' }],
    additionals: [
      { name: '.', type: 'OPT', udpPayloadSize: UDP_BYTES, extendedRcode: 0, ednsVersion: 0, flags: 0, options: [] },
    ] as unknown as dnsPacket.Answer[],
  })
  const short = await exchangeUdp(server, query, signal)
  if (!isTruncated(short)) return { ...read(short, name, type), overTcp: false }
  for await (const message of exchangeTcp(server, query, signal)) {
    return { ...read(message, name, type), overTcp: true }
  }
  throw new DnsProviderError('unreachable', `${server.host}:${server.port} closed the connection.`)
}

function read(message: Buffer, name: string, type: RecordType) {
  const packet = decode(message)
  const [question] = packet.questions ?? []
  if (question && (normaliseName(question.name) !== name || question.type !== type)) {
    throw new DnsProviderError('server_error', 'The name server answered another question.')
  }
  const records = (packet.answers ?? []).flatMap((answer) => fromAnswer(answer) ?? [])
  const recordSet = groupRecords(records).find((set) => set.name === name && set.type === type) ?? null
  const { rcode } = packet as unknown as { rcode: string }
  return { rcode, authoritative: packet.flag_aa, recordSet }
}

/** Read before the rest is decoded, since a server may have cut the message anywhere. */
function isTruncated(message: Buffer): boolean {
  return (message.readUInt8(2) & 0x02) !== 0
}

function decode(message: Buffer): dnsPacket.DecodedPacket {
  try {
    return dnsPacket.decode(message)
  } catch (cause) {
    throw new DnsProviderError('server_error', 'The name server answered with a malformed message.', { cause })
  }
}
