import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const preload = fileURLToPath(new URL('./poison.ts', import.meta.url))

/** In a process of its own, which the misuse is meant to end. */
function run(program: string) {
  const code = `import fs from 'node:fs'\nimport { once } from 'node:events'\n${program}`
  const args = ['--import', preload, '--input-type=module', '--eval', code]
  // What the suite itself was started with would load it twice.
  const { NODE_OPTIONS: _, ...env } = process.env
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
  return { status, stderr }
}

const MISUSES: Record<string, [program: string, words: RegExp]> = {
  'a second closeSync': [
    `function first(fd) { fs.closeSync(fd) }
     const fd = fs.openSync('/dev/null', 'r'); first(fd); try { fs.closeSync(fd) } catch {}`,
    /descriptor \d+ is closed twice.*was closed.*at first.*was opened/s,
  ],
  'a second close by somebody else, though the number was opened again meanwhile': [
    `const fd = fs.openSync('/dev/null', 'r'); fs.closeSync(fd)
     const other = fs.openSync('/proc/self/stat', 'r'); try { fs.closeSync(fd) } catch {}
     fs.readSync(other, Buffer.alloc(1))`,
    /descriptor \d+ is closed twice/,
  ],
  'a stream that closes a descriptor that was lent to it, and its owner': [
    `const fd = fs.openSync('/etc/passwd', 'r')
     const stream = fs.createReadStream('', { fd, autoClose: false, start: 0 })
     stream.destroy(); await once(stream, 'close'); try { fs.closeSync(fd) } catch {}`,
    /is closed twice.*was closed.*ReadStream/s,
  ],
  'a read of a closed number': [
    `const fd = fs.openSync('/etc/passwd', 'r'); fs.closeSync(fd)
     fs.read(fd, Buffer.alloc(1), 0, 1, 0, () => {})`,
    /read of descriptor \d+, which is closed/,
  ],
  'a path through a closed number': [
    `const fd = fs.openSync('/tmp', 'r'); fs.closeSync(fd); try { fs.lstatSync('/proc/self/fd/' + fd + '/x') } catch {}`,
    /lstatSync through descriptor \d+, which is closed/,
  ],
  'a number of a handle that was closed': [
    `const handle = await fs.promises.open('/etc/passwd'); fs.closeSync(handle.fd); await handle.close().catch(() => {})`,
    /is closed twice/,
  ],
  'a misuse in a worker thread': [
    `import { Worker } from 'node:worker_threads'
     const fd = fs.openSync('/etc/passwd', 'r'); fs.closeSync(fd)
     const code = "import fs from 'node:fs'; import { workerData } from 'node:worker_threads'; try { fs.fstatSync(workerData) } catch {}"
     await once(new Worker(code, { eval: true, workerData: fd }), 'exit')
     await new Promise((resolve) => setTimeout(resolve, 5000))`,
    /fstatSync of descriptor \d+, which is closed/,
  ],
}

for (const [what, [program, words]] of Object.entries(MISUSES))
  test(`${what} ends the process with both stacks`, () => {
    const { status, stderr } = run(program)
    assert.match(stderr, words)
    assert.notEqual(status, 0)
  })

test('what is opened, used and closed once is let through, in every way that there is', () => {
  const { status, stderr } = run(`
    import { promisify } from 'node:util'
    for (let round = 0; round < 200; round++) {
      const fd = fs.openSync('/etc/passwd', 'r'); fs.readSync(fd, Buffer.alloc(4)); fs.closeSync(fd)
    }
    const fd = await promisify(fs.open)('/etc/passwd', 'r')
    const { bytesRead } = await promisify(fs.read)(fd, Buffer.alloc(4), 0, 4, 0)
    if (bytesRead !== 4) throw new Error('read')
    await promisify(fs.close)(fd)
    const handle = await fs.promises.open('/etc/passwd'); await handle.readFile(); await handle.close(); await handle.close()
    await fs.promises.readFile('/etc/passwd'); fs.readFileSync('/etc/passwd')
    for await (const _ of fs.createReadStream('/etc/passwd'));
    for await (const _ of await fs.promises.opendir('/etc'));
  `)
  assert.equal(stderr, '')
  assert.equal(status, 0)
})

test('this process is under the same watch', () => {
  assert.match(process.env.NODE_OPTIONS ?? '', /descriptors\/poison\.ts/)
})
