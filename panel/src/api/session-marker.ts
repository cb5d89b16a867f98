// Whether this browser has signed in before. The cookie itself cannot be read here, and asking without one is answered with an
// error that the browser writes to its console.

const KEY = 'gamekeeper-signed-in'

export function mayHaveSession(): boolean {
  try {
    return localStorage.getItem(KEY) !== null
  } catch {
    return true
  }
}

export function markSession(isThere: boolean): void {
  try {
    if (isThere) localStorage.setItem(KEY, 'yes')
    else localStorage.removeItem(KEY)
  } catch {
    // Storage is switched off: the service is asked every time.
  }
}
