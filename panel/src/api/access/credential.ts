// A link brings its secret in the fragment, which a browser never sends to any server.
import type { NewSession } from '../../../../src/sdk/index.ts'

/** `#link=…` or `#invitation=…`; null when there is none. */
export function readCredential(fragment: string): NewSession | null {
  const values = new URLSearchParams(fragment.replace(/^#/, ''))
  const link = values.get('link')
  if (link) return { link }
  const invitation = values.get('invitation')
  return invitation ? { invitation } : null
}

/** Also takes it out of the address, so that it does not stay in the history. */
export function takeCredential(): NewSession | null {
  const credential = readCredential(location.hash)
  if (credential) history.replaceState(history.state, '', location.pathname + location.search)
  return credential
}
