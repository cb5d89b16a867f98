import type { Server } from '../../../../src/sdk/index.ts'

/** "owner=anna", or the name by itself where it has no value. */
const labelsOf = ({ labels }: Server) =>
  Object.entries(labels).map(([name, value]) => (value === '' ? name : `${name}=${value}`))

/** Every label that is in use, by the alphabet. */
export function allLabels(servers: readonly Server[]): string[] {
  return [...new Set(servers.flatMap(labelsOf))].sort((a, b) => a.localeCompare(b))
}

export const hasLabels = (server: Server, wanted: ReadonlySet<string>) => wanted.isSubsetOf(new Set(labelsOf(server)))
