import { readDisks } from '../contract/disks.ts'
import type { CallOptions } from './request.ts'
import type { Transport } from './transport.ts'

export function createDisksApi(transport: Transport) {
  return {
    /** Each disk of the machine once, with what lies on it. */
    read: transport.method(readDisks, (options: CallOptions = {}) => options),
  }
}
