// The folder that is open is in the address: /servers/{id}/files/world/region.

export function directoryOf(rest: string | undefined): string {
  const names = (rest ?? '').split('/').filter((name) => name !== '')
  return `/${names.map(decodeSegment).join('/')}`
}

export function hrefOf(serverId: string, path: string): string {
  const names = path.split('/').filter((name) => name !== '')
  return ['', 'servers', serverId, 'files', ...names.map(encodeURIComponent)].join('/')
}

/** Each folder on the way down, with its path. */
export function parentsOf(path: string): { name: string; path: string }[] {
  const names = path.split('/').filter((name) => name !== '')
  return names.map((name, index) => ({ name, path: `/${names.slice(0, index + 1).join('/')}` }))
}

function decodeSegment(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
