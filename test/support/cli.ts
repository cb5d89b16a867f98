// The commands, piped, against a service that lives as long as the test file.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import type { Ran } from './ran.ts'
import { startTestService, type TestService } from './service.ts'
import { runPiped } from './terminal.ts'

/** To be called at the top of a test file. What it gives can be used from `before` on. */
export function useCli() {
  let service: TestService
  let folder: string
  before(async () => {
    service = await startTestService()
    folder = mkdtempSync(join(tmpdir(), 'gamekeeper-cli-'))
  })
  after(async () => {
    await service.stop()
    rmSync(folder, { recursive: true })
  })

  const envOf = (token = service.adminToken) => ({ GAMEKEEPER_URL: service.url, GAMEKEEPER_TOKEN: token })
  const run = (...args: string[]): Promise<Ran> => runPiped(args, envOf())

  return {
    get service() {
      return service
    },
    /** For whatever a test wants to write. */
    get folder() {
      return folder
    },
    envOf,
    run,
    async json(...args: string[]) {
      const { code, stdout, stderr } = await run(...args, '--json')
      assert.equal(code, 0, stderr)
      return JSON.parse(stdout)
    },
  }
}
