import { useLingui } from '@lingui/react/macro'
import { useFileActions } from '../../../api/files.ts'
import { showFailure, showToast } from '../../../components/toasts.tsx'

/** Deletes at once, without a question, because it can be undone. */
export function useRemoval(serverId: string, directory: string): (names: string[]) => void {
  const { t } = useLingui()
  const { remove, undelete } = useFileActions(serverId)
  const putBack = (names: string[]) =>
    undelete.mutate({ directory, names }, { onError: (error) => showFailure(t`It could not be put back`, error) })
  return (names) =>
    remove.mutate(
      { directory, names },
      {
        onSuccess: () =>
          showToast(names.length === 1 ? t`${names[0]} is in the trash` : t`${names.length} items are in the trash`, {
            label: t`Undo`,
            run: () => putBack(names),
          }),
        onError: (error) => showFailure(t`It could not be deleted`, error),
      },
    )
}
