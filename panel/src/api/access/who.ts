// Who is signed in, for what lives outside of the pages: uploads go on while somebody looks at something else.
import type { QueryClient } from '@tanstack/react-query'
import type { SignedIn } from '../../../../src/sdk/index.ts'
import { SESSION_KEY } from './session.ts'

/** Undefined: not known yet. Null: nobody. */
let signedIn: SignedIn | null | undefined
let ask = () => {}
const listeners = new Set<() => void>()

/** The id of the token that they are signed in with: the same person comes back with the same. */
export const signedInId = (): string | null => signedIn?.id ?? null

/** Calls back each time that the service or a sign-in has said who it is, whether or not it is another. */
export const onSignedIn = (listener: () => void) => void listeners.add(listener)

/** For whoever was refused: it may be that the session has ended. */
export const askWhoIsSignedIn = () => ask()

export function followSession(queries: QueryClient): void {
  ask = () => void queries.invalidateQueries({ queryKey: SESSION_KEY })
  queries.getQueryCache().subscribe((event) => {
    if (event.type !== 'updated' || event.action.type !== 'success' || event.query.queryKey[0] !== SESSION_KEY[0])
      return
    signedIn = event.query.state.data as SignedIn | null
    for (const listener of listeners) listener()
  })
}
