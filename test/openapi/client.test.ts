// A client that somebody else's generator makes of the document: it compiles, its types say no where they should, and it works.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { BASE_PATH } from '../../src/contract/operation.ts'
import { startTestService } from '../support/service.ts'

const run = promisify(execFile)
const TSC = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))

/** The generator builds syntax trees with the compiler of TypeScript 5; that of TypeScript 7 cannot be called. */
async function loadGenerator() {
  const url = new URL('typescript-5.ts', import.meta.url).href
  using _hooks = disposable(
    registerHooks({
      resolve: (specifier, context, next) =>
        specifier === 'typescript' ? { url, shortCircuit: true } : next(specifier, context),
    }),
  )
  return await import('openapi-typescript')
}

const disposable = (hooks: { deregister(): void }) => ({ [Symbol.dispose]: () => hooks.deregister() })

const CLIENT = `
import type { components, operations, paths } from './gamekeeper.ts'

type Schemas = components['schemas']
type Answer<P extends keyof paths, M extends keyof paths[P]> = paths[P][M] extends {
  responses: { 200: { content: { 'application/json': infer A } } }
}
  ? A
  : paths[P][M] extends { responses: { 201: { content: { 'application/json': infer A } } } }
    ? A
    : never

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers = { authorization: \`Bearer \${process.env.TOKEN}\`, 'content-type': 'application/json' }
  const answer = await fetch(process.env.URL_OF_SERVICE + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!answer.ok) throw new Error(((await answer.json()) as Schemas['Problem']).code)
  return (await answer.json()) as T
}

const wanted: Schemas['NewServer'] = { name: 'Castle', port: 25565, limits: { backups: 30 } }
const made = await call<Answer<'/v1/game/servers', 'post'>>('POST', '/v1/game/servers', wanted)
const server: Schemas['Server'] = made
const { data } = await call<Answer<'/v1/game/servers', 'get'>>('GET', '/v1/game/servers')
const id: string | undefined = data[0]?.id
const key: NonNullable<operations['createServer']['parameters']['header']>['Idempotency-Key'] = 'once'
type Upload = paths['/v1/game/uploads/{link}']['post']
const files: Upload['responses'][200]['content']['application/json']['data'] = [] as Schemas['FileEntry'][]
const code: operations['lockBackup']['responses'][404]['content']['application/problem+json']['code'] = 'not_found'

// @ts-expect-error a port is a number
const wrongPort: Schemas['NewServer'] = { name: 'Castle', port: '25565' }
// @ts-expect-error a name is needed
const nameless: Schemas['NewServer'] = { port: 25565 }
// @ts-expect-error a server has no such field
const noField = server.nothingOfTheKind
// @ts-expect-error there is no such status
const status: Schemas['Backup']['status'] = 'done'

console.log(JSON.stringify([server.name, server.limits.backups, id === server.id, key, files.length, code]))
void [wrongPort, nameless, noField, status]
`

test('a client generated from the document by openapi-typescript compiles and works', async () => {
  await using service = await startTestService()
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-client-'))
  try {
    const { default: generate, astToString } = await loadGenerator()
    const document = await (await fetch(`${service.url}${BASE_PATH}/openapi.json`)).text()
    writeFileSync(join(folder, 'gamekeeper.ts'), astToString(await generate(document)))
    writeFileSync(join(folder, 'client.ts'), CLIENT)
    const types = fileURLToPath(new URL('../../node_modules/@types', import.meta.url))
    const options = {
      strict: true,
      noEmit: true,
      target: 'esnext',
      module: 'nodenext',
      types: ['node'],
      typeRoots: [types],
    }
    const compilerOptions = { ...options, allowImportingTsExtensions: true, exactOptionalPropertyTypes: true }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
    const compiled = await run(process.execPath, [TSC, '-p', folder]).catch((error) => error)
    assert.equal(compiled.stdout, '')
    const env = { ...process.env, URL_OF_SERVICE: service.url, TOKEN: service.adminToken }
    const { stdout } = await run(process.execPath, [join(folder, 'client.ts')], { env })
    assert.deepEqual(JSON.parse(stdout), ['Castle', 30, true, 'once', 0, 'not_found'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
