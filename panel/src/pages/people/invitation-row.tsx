import { Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import type { Invitation } from '../../../../src/sdk/index.ts'
import { useAccessActions } from '../../api/access/people.ts'
import { Icon } from '../../components/icon.tsx'
import { Moment } from '../../components/moment.tsx'
import { showFailure, showToast } from '../../components/toasts.tsx'
import { AccessWords } from './access-words.tsx'
import css from './people-page.module.css'

export function InvitationRow({ invitation: { id, name, scopes, servers, expiresAt } }: { invitation: Invitation }) {
  const { t } = useLingui()
  const { takeBack } = useAccessActions()
  const run = () =>
    takeBack.mutate(id, {
      onSuccess: () => showToast(t`The link for ${name} no longer works.`),
      onError: (error) => showFailure(t`The invitation could not be taken back`, error),
    })
  return (
    <li className={css.person}>
      <span className={css.avatar}>
        <Icon name="mail" />
      </span>
      <div className="grow">
        <p className={css.name}>
          <strong className="cut">{name}</strong>
        </p>
        <p className="small soft">
          <AccessWords scopes={scopes} servers={servers} />
        </p>
      </div>
      <Button
        variant="default"
        size="xs"
        loading={takeBack.isPending}
        aria-label={t`Take the invitation of ${name} back`}
        onClick={run}
      >
        <Trans>Take back</Trans>
      </Button>
      <p className={`small faint ${css.seen}`}>
        <Trans>
          The link ends <Moment at={expiresAt} />
        </Trans>
      </p>
    </li>
  )
}
