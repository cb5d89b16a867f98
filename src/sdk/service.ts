// The service itself, beside the API: whether it can work, and what time it has.
import { TransportError } from './errors.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

export interface Readiness {
  ready: boolean
  /** `ok`, or what is wrong, by the name of the check. */
  checks: Record<string, string>
  /** What somebody should look at though the service can work, by the name of the check. */
  warnings: Record<string, string>
  /** The clock of the service, to the second; null when a proxy has taken the header away. */
  time: Date | null
}

export function createServiceApi(transport: Transport) {
  return {
    /** Needs no token. */
    async readiness(options: CallOptions = {}): Promise<Readiness> {
      const response = await transport.probe('/readyz', options)
      const body = (await response.json().catch(() => null)) as {
        status?: string
        checks?: Record<string, string>
        warnings?: Record<string, string>
      } | null
      if (!body?.checks) {
        const message = `It answered ${response.status}, but not as Gamekeeper does. Is the address right?`
        throw new TransportError('foreign_answer', message, { status: response.status })
      }
      const date = Date.parse(response.headers.get('date') ?? '')
      const { checks, warnings = {} } = body
      return { ready: response.ok, checks, warnings, time: Number.isNaN(date) ? null : new Date(date) }
    },
  }
}
