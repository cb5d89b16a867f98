// What eggs write in two braces, as it is called in a template.

const PLACEHOLDER = /\{\{\s*([\w.-]+)\s*\}\}/g

/** What every server has, by the name of its environment variable there. */
export const SERVER_ENVIRONMENT: Readonly<Record<string, string>> = {
  SERVER_PORT: 'server.port',
  SERVER_IP: 'server.address',
  SERVER_MEMORY: 'server.memoryMiB',
  P_SERVER_UUID: 'server.id',
}

const FACTS: Readonly<Record<string, string>> = {
  ...SERVER_ENVIRONMENT,
  'server.build.default.port': 'server.port',
  'server.allocations.default.port': 'server.port',
  'server.build.default.ip': 'server.address',
  'server.allocations.default.ip': 'server.address',
  'server.build.memory': 'server.memoryMiB',
  'server.build.memory_limit': 'server.memoryMiB',
  'server.uuid': 'server.id',
  'server.name': 'server.name',
}
const ENVIRONMENT = /^(?:server\.build\.env|server\.environment|server\.build\.environment|env)\.(\w+)$/

/** The name in the template, or null where there is nothing like it. */
export function nameInTemplate(name: string, variables: ReadonlySet<string>): string | null {
  const plain = ENVIRONMENT.exec(name)?.[1] ?? name
  if (variables.has(plain)) return plain
  return Object.hasOwn(FACTS, plain) ? (FACTS[plain] ?? null) : null
}

export interface Translated {
  text: string
  /** Names that nothing here has. */
  unknown: string[]
}

export function translate(
  text: string,
  variables: ReadonlySet<string>,
  write: (name: string, original: string) => string = (name) => `{{${name}}}`,
): Translated {
  const unknown: string[] = []
  const translated = text.replace(PLACEHOLDER, (_, name: string) => {
    const known = nameInTemplate(name, variables)
    if (known !== null) return write(known, name)
    unknown.push(name)
    return ''
  })
  return { text: translated, unknown }
}
