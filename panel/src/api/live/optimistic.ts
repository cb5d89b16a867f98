// What is shown before the service has answered: only changes that can be taken back, and that are hardly ever refused.
import type { QueryClient, QueryFilters, QueryKey } from '@tanstack/react-query'

/** For a mutation. `change` answers the same object where nothing changes. Where it is refused, all is as it was. */
export function shownAtOnce<Data, Variables>(
  queries: QueryClient,
  filters: QueryFilters,
  change: (data: Data, variables: Variables) => Data,
) {
  return {
    async onMutate(variables: Variables): Promise<[QueryKey, Data | undefined][]> {
      // An answer from before the change would take it back for a moment.
      await queries.cancelQueries(filters)
      const before = queries.getQueriesData<Data>(filters)
      queries.setQueriesData<Data>(filters, (data) => data && change(data, variables))
      return before
    },
    onError(_error: Error, _variables: Variables, before: [QueryKey, Data | undefined][] | undefined): void {
      for (const [key, data] of before ?? []) queries.setQueryData(key, data)
    },
  }
}
