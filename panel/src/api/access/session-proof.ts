// The half of the session that a page keeps: sent along with each request, and worth nothing without the cookie, which no script
// can read. Storage belongs to the origin, port included, so that a game on another port of the host, which the browser does
// send the cookie to, never gets it. It is also how a page knows that there is a session: asking without one is answered with
// an error that the browser writes to its console.

const KEY = 'gamekeeper-session'
/** Where storage is switched off, the session lasts as long as the page. */
let held: string | null = null

export function sessionProof(): string | null {
  try {
    return localStorage.getItem(KEY) ?? held
  } catch {
    return held
  }
}

/** Null: there is no session any more. */
export function keepSessionProof(proof: string | null): void {
  held = proof
  try {
    if (proof === null) localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, proof)
  } catch {
    // Held in memory.
  }
}

/** Who signs in or out in another tab does so here: this one begins anew, with nothing of the one before. */
export function followOtherTabs(): void {
  addEventListener('storage', ({ key }) => {
    if (key === KEY) location.reload()
  })
}
