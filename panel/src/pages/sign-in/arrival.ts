import type { NewSession } from '../../../../src/sdk/index.ts'
import { takeCredential } from './credential.ts'

// Read before anything is shown, so that the address is clean from the first moment on.
let arrival: NewSession | null = takeCredential()

export const hasArrival = (): boolean => arrival !== null

/** Once: in React's strict mode an effect runs twice, and a link is good only once. */
export function takeArrival(): NewSession | null {
  const taken = arrival
  arrival = null
  return taken
}
