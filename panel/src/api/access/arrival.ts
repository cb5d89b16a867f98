// What somebody arrived with: the secret of a link or an invitation, from the address.
import type { NewSession } from '../../../../src/sdk/index.ts'
import { readCredential, takeCredential } from './credential.ts'

/** Where links lead. At any other address nothing asks whether to use it, and what nobody was asked about is not kept. */
const ARRIVALS = new Set(['/sign-in', '/join'])

// Read before anything is shown, so that the address is clean from the first moment on.
const brought = takeCredential()
let arrival: NewSession | null = ARRIVALS.has(location.pathname) ? brought : null

// A second link in the same tab differs in the fragment alone, for which a browser loads nothing.
addEventListener('hashchange', () => {
  if (readCredential(location.hash)) location.reload()
})

/** Once: whoever takes it uses it, or lets it go. */
export function takeArrival(): NewSession | null {
  const taken = arrival
  arrival = null
  return taken
}

/** When a session ends: what was brought into it is not for whoever comes next. */
export function dropArrival(): void {
  arrival = null
}
