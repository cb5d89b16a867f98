import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Loader } from '@mantine/core'
import { Link } from 'wouter'
import type { Server } from '../../../../src/sdk/index.ts'
import { useMay } from '../../api/access/session.ts'
import { useDeletion } from '../../api/server-settings.ts'
import { Empty } from '../../components/empty.tsx'
import { Moment } from '../../components/moment.tsx'
import { useDocumentTitle } from '../../components/page-title.tsx'
import { showFailure, showToast } from '../../components/toasts.tsx'

/** A server that is deleted, or on its way there or back. */
export function DeletedServer({ server }: { server: Server }) {
  const { t } = useLingui()
  const may = useMay()
  const { bringBack } = useDeletion(server.id)
  const { name, status, deletion } = server
  useDocumentTitle(name)
  const restore = () =>
    bringBack.mutate(undefined, {
      onSuccess: () => showToast(t`${name} is back.`),
      onError: (error) => showFailure(t`${name} could not be brought back`, error),
    })
  if (status !== 'deleted') {
    return (
      <Empty icon="trash" title={name}>
        <p role="status">
          {status === 'undeleting' ? <Trans>It is being brought back…</Trans> : <Trans>It is being deleted…</Trans>}
        </p>
        <Loader size="sm" />
      </Empty>
    )
  }
  return (
    <Empty icon="trash" title={t`${name} is deleted`}>
      {deletion && (
        <p>
          <Trans>
            Deleted <Moment at={deletion.deletedAt} />. It can be brought back with everything it had until it is gone
            for good, <Moment at={deletion.purgeAt} />.
          </Trans>
        </p>
      )}
      {may('servers:write') && (
        <Button loading={bringBack.isPending} onClick={restore}>
          <Trans>Bring it back</Trans>
        </Button>
      )}
      <Link href="/">
        <Trans>To your servers</Trans>
      </Link>
    </Empty>
  )
}
