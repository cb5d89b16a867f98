import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FileVersion, isApiError, type Server } from '../../../../../../src/sdk/index.ts'
import { useMay } from '../../../../api/access/session.ts'
import { useSaveBackupFile } from '../../../../api/backup-contents.ts'
import { client } from '../../../../api/client.ts'
import { filesKey } from '../../../../api/files.ts'
import { Icon } from '../../../../components/icon.tsx'
import { Problem } from '../../../../components/problem.tsx'
import { showFailure, showToast } from '../../../../components/toasts.tsx'
import { shortTime } from '../../../../i18n/format.ts'
import { DiffView } from '../diff/diff-view.tsx'
import { readTextFile, textOf } from '../editor/text-file.ts'
import css from './versions.module.css'

interface Props {
  server: Server
  version: FileVersion
  name: string
}

export function VersionDetails({ server, version, name }: Props) {
  const { t, i18n } = useLingui()
  const mayWrite = useMay()('files:write')
  const { data, error } = useTexts(server.id, version)
  const save = useSaveBackupFile(server.id, version.backupId)
  const bringBack = useBringBack(server, version, name)
  const time = shortTime(new Date(version.backupCreatedAt), i18n.locale)
  return (
    <div className={css.details}>
      <div className="row spread">
        <p className="soft">
          <Trans>From the version of {time} to the file as it is now</Trans>
        </p>
        <div className="row">
          <Button
            size="sm"
            variant="default"
            leftSection={<Icon name="download" size={16} />}
            loading={save.isPending}
            onClick={() => save.mutate({ path: version.path, name })}
          >
            <Trans>Download</Trans>
          </Button>
          {mayWrite && version.kind === 'file' && (
            <Button
              size="sm"
              leftSection={<Icon name="restore" size={16} />}
              loading={bringBack.isPending}
              onClick={() => bringBack.mutate()}
            >
              <Trans>Bring this one back</Trans>
            </Button>
          )}
        </div>
      </div>
      {error && <Problem error={error} />}
      {data === undefined && !error && <Skeleton height={240} radius="md" />}
      {data === null && (
        <p className="soft">
          <Trans>It is not a text, or too large to be compared here.</Trans>
        </p>
      )}
      {data && <DiffView label={t`Differences`} before={data.then} after={data.now} />}
    </div>
  )
}

/** Null: not both are texts. */
function useTexts(serverId: string, { backupId, path, version }: FileVersion) {
  return useQuery({
    queryKey: [...filesKey(serverId), 'version', path, version],
    queryFn: async ({ signal }) => {
      const then = await textOf(await client.backups.readFile(serverId, backupId, path, { signal }))
      const now = await readTextFile(serverId, path, signal).catch((error: unknown) => {
        // It was deleted: everything is missing.
        if (isApiError(error, 'not_found')) return { text: '' }
        throw error
      })
      return then === null || now === null ? null : { then, now: now.text }
    },
    refetchOnWindowFocus: false,
  })
}

/** What is there now goes to the trash, so that nothing is lost by it. */
function useBringBack({ id }: Server, { backupId, path }: FileVersion, name: string) {
  const { t } = useLingui()
  const queries = useQueryClient()
  return useMutation({
    mutationFn: async () => {
      const { bytes } = await client.backups.readFile(id, backupId, path)
      await client.files.write(id, path, await new Response(bytes).blob(), { timeoutMs: 0 })
    },
    onSuccess: () => showToast(t`${name} is back. What was there is in the trash.`),
    onError: (error) => showFailure(t`${name} could not be brought back`, error),
    onSettled: () => queries.invalidateQueries({ queryKey: filesKey(id) }),
  })
}
