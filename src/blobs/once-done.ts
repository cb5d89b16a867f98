/** Whoever comes meanwhile waits for the same; what has failed is tried again by the next. */
export function onceDone<T>(work: () => Promise<T>): () => Promise<T> {
  let under: Promise<T> | undefined
  return () => {
    under ??= work().catch((error: unknown) => {
      under = undefined
      throw error
    })
    return under
  }
}
