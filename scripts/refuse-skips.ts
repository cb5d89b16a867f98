// A test reporter: a test that was skipped fails the run. In CI nothing may be left out unnoticed.
import type { TestEvent } from 'node:test/reporters'

export default async function* refuseSkips(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of source) {
    if (event.type !== 'test:pass' || event.data.skip === undefined) continue
    process.exitCode = 1
    yield `skipped, which fails the run: ${event.data.name} (${event.data.skip})\n`
  }
}
