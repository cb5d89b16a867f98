// A refused path is named by the field of the request that held it, as a fault that its schema finds is.
import { FAULTS_MAX, type Failure, type FieldFault, fail, isFailure } from '../../contract/errors.ts'

/** Runs `work`, which is about one field of a request: a refusal of it names that field, unless it names one already. */
export function aboutField<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw naming(path, error)
  }
}

export async function aboutFieldAsync<T>(path: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw naming(path, error)
  }
}

function naming(path: string, error: unknown): unknown {
  if (!isFailure(error, 'invalid_path') || error.errors) return error
  const { code, detail } = error
  return fail(code, { detail, errors: [{ path, message: detail }] }, error)
}

export interface FieldFaults {
  /** Undefined where the field is at fault. */
  check<T>(path: string, work: () => T): T | undefined
  /** Keeps a refusal that names its fields, up to FAULTS_MAX. Throws anything else, or the faults before it where there are any. */
  add(error: unknown): void
  /** Throws if any field is at fault. */
  refuse(): void
}

/** Collects the faults of a whole request, so that one refusal names them all. */
export function createFieldFaults(): FieldFaults {
  let first: Failure | undefined
  const errors: FieldFault[] = []

  function refuse(): void {
    if (first) throw fail(first.code, { detail: first.detail, errors: errors.slice(0, FAULTS_MAX) }, first)
  }

  function add(error: unknown): void {
    if (isFailure(error) && error.errors) {
      first ??= error
      errors.push(...error.errors)
      // Nothing more would be named, and whoever sends a thousand bad paths is not to cost as much as they can.
      if (errors.length >= FAULTS_MAX) refuse()
    } else {
      refuse()
      throw error
    }
  }

  return {
    check(path, work) {
      try {
        return work()
      } catch (error) {
        return void add(naming(path, error))
      }
    },
    add,
    refuse,
  }
}
