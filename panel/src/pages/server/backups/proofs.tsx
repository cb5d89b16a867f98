import { Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import type { Backup, Server } from '../../../../../src/sdk/index.ts'
import { client } from '../../../api/client.ts'
import { showFailure, showToast } from '../../../components/toasts.tsx'
import { useFollowJob } from '../jobs/follow-job.ts'

interface Props {
  server: Server
  backup: Backup
}

/** What shows that a backup is good. Each resolves when its job has ended. */
export function useProofs({ server, backup: { id, name } }: Props) {
  const { t } = useLingui()
  const follow = useFollowJob(server.id)
  const verify = useMutation({
    mutationFn: async () => {
      const failed = t`${name} could not be verified`
      const job = await client.backups.verify(server.id, id)
      await follow(job, { failed, onDone: ({ result }) => showToast(verified(result)) })
    },
    onError: (error) => showFailure(t`${name} could not be verified`, error),
  })
  const verified = (result: unknown) =>
    isSound(result)
      ? t`Every byte of ${name} was read, and is right.`
      : t`${name} is damaged. Its intact parts can still be restored.`
  const rehearse = useMutation({
    mutationFn: async () => {
      const failed = t`${name} could not be rehearsed`
      const job = await client.backups.rehearse(server.id, id)
      await follow(job, { failed, onDone: ({ result }) => showToast(rehearsed(result)) })
    },
    onError: (error) => showFailure(t`${name} could not be rehearsed`, error),
  })
  const rehearsed = (result: unknown) =>
    hasPassed(result) ? t`The game came up from ${name}.` : t`The game did not come up from ${name}.`
  return { verify, rehearse }
}

const isSound = (result: unknown) => {
  const { damage = [] } = (result ?? {}) as { damage?: unknown[] }
  return damage.length === 0
}
const hasPassed = (result: unknown) => (result as { outcome?: string } | null)?.outcome === 'passed'

/** Buttons for what was not shown yet. */
export function Proofs({ server, backup }: Props) {
  const { verify, rehearse } = useProofs({ server, backup })
  return (
    <span className="row">
      {backup.verifiedAt === null && (
        <Button
          size="compact-xs"
          variant="subtle"
          color="gray"
          loading={verify.isPending}
          onClick={() => verify.mutate()}
        >
          <Trans>Verify</Trans>
        </Button>
      )}
      {backup.rehearsal === null && backup.error === null && (
        <Button
          size="compact-xs"
          variant="subtle"
          color="gray"
          loading={rehearse.isPending}
          onClick={() => rehearse.mutate()}
        >
          <Trans>Rehearse</Trans>
        </Button>
      )}
    </span>
  )
}
