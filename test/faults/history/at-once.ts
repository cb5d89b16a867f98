/** Does the work on every item, in their order, on `count` of them at a time. */
export async function atOnce<T>(count: number, items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values()
  const take = async () => {
    for (const item of left) await work(item)
  }
  await Promise.all(Array.from({ length: count }, take))
}
