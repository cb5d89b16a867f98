// Takes out of the contract what it says for the API reference, of which the panel shows nothing: the first page would load
// several kilobytes of sentences and examples.

const UNUSED = new Set(['bodyExample', 'description', 'example', 'summary'])
const CONTRACT = /\/src\/contract\//

interface PropertyPath {
  node: { key: { type: string; name?: string } }
  remove(): void
}

/** For Babel. */
export function documentationFree() {
  return {
    name: 'gamekeeper-documentation-free',
    visitor: {
      ObjectProperty(path: PropertyPath, { filename = '' }: { filename?: string }) {
        const { key } = path.node
        if (key.type === 'Identifier' && UNUSED.has(key.name ?? '') && CONTRACT.test(filename)) path.remove()
      },
    },
  }
}
