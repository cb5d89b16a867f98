import { readDisks } from '../contract/disks.ts'
import type { QueryOf } from '../contract/operation.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

export function createDisksApi(transport: Transport) {
  return {
    /** Each disk of the machine once, with what lies on it. */
    read: transport.method(readDisks, (query: QueryOf<typeof readDisks> = {}, options: CallOptions = {}) => ({
      query,
      ...options,
    })),
  }
}
