/** Rows that are deleted at once: SQLite does it on the thread that serves everyone. */
export const DELETE_BATCH = 200

/** Calls `remove`, which takes away at most DELETE_BATCH rows and says how many, until none is left; others get their turn. */
export async function deleteInBatches(remove: () => Promise<{ numDeletedRows: bigint }>): Promise<void> {
  for (;;) {
    const { numDeletedRows } = await remove()
    if (numDeletedRows < BigInt(DELETE_BATCH)) return
    await new Promise((resolve) => setImmediate(resolve))
  }
}
