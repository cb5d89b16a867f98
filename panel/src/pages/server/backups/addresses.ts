type View = { show: 'plan' } | { inside: string; path?: string } | { from: string; to?: string }

/** Of the tab, and of what it shows instead of the time line. */
export function addressOfBackups(serverId: string, view?: View): string {
  const query = view ? `?${new URLSearchParams(Object.entries(view))}` : ''
  return `/servers/${serverId}/backups${query}`
}
