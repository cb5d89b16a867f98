// One example value for each kind of id that an address holds.

const PREFIXES: Record<string, string> = {
  serverId: 'srv',
  backupId: 'bkp',
  scheduleId: 'sch',
  subdomainId: 'sub',
  trashId: 'trs',
  jobId: 'job',
  tokenId: 'tok',
  sessionId: 'ses',
  invitationId: 'inv',
  tusId: 'upl',
}
const SORTABLE = '01k9zq6m3t8v5w2x7y4c1b6d9e'

const OTHERS: Record<string, string> = {
  templateId: 'minecraft-java',
  link: 'eyJhbGciOiJIUzI1NiJ9.e30.c2ln',
}

export function pathExample(name: string): string {
  const prefix = PREFIXES[name]
  const example = prefix === undefined ? OTHERS[name] : `${prefix}_${SORTABLE}`
  if (example === undefined) throw new TypeError(`no example of ${name}`)
  return example
}
