// A call of Minecraft's management protocol as a template has it: a method and, after a blank, its parameters as a list in JSON.
export interface ManagementCall {
  method: string
  params: unknown[]
}

/** Undefined where it is none. */
export function parseManagementCall(command: string): ManagementCall | undefined {
  const [, method, list = '[]'] = /^([a-z0-9_:./-]+)(?: +(\[.*\]))?$/.exec(command) ?? []
  if (method === undefined) return undefined
  try {
    return { method, params: JSON.parse(list) as unknown[] }
  } catch {
    return undefined
  }
}
