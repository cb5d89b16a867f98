import { Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import { useState } from 'react'
import type { Token } from '../../../../src/sdk/index.ts'
import { useAccessActions } from '../../api/access/people.ts'
import { useSession } from '../../api/access/session.ts'
import { Confirm } from '../../components/confirm.tsx'
import { Moment } from '../../components/moment.tsx'
import { showFailure, showToast } from '../../components/toasts.tsx'
import { AccessWords } from './access-words.tsx'
import css from './people-page.module.css'
import SessionsDialog from './sessions/sessions-dialog.tsx'

export function PersonRow({ token }: { token: Token }) {
  const { data: session } = useSession()
  const isYou = session?.id === token.id
  return (
    <li className={css.person}>
      <span className={css.avatar} aria-hidden="true">
        {token.name.slice(0, 1).toUpperCase()}
      </span>
      <div className="grow">
        <p className={css.name}>
          <strong className="cut">{token.name}</strong>
          {isYou && (
            <span className={css.you}>
              <Trans>you</Trans>
            </span>
          )}
        </p>
        <p className="small soft">
          <AccessWords scopes={token.scopes} servers={token.servers} />
        </p>
      </div>
      <div className={css.actions}>
        <Devices token={token} isYou={isYou} />
        {/* Whoever takes their own access away could not give it back. */}
        {!isYou && <Revoke token={token} />}
      </div>
      <p className={`small faint ${css.seen}`}>
        {token.lastUsedAt === null ? (
          <Trans>Never seen</Trans>
        ) : (
          <Trans>
            Last seen: <Moment at={token.lastUsedAt} />
          </Trans>
        )}
        {token.expiresAt !== null && (
          <>
            {' · '}
            <Trans>
              Access ends <Moment at={token.expiresAt} />
            </Trans>
          </>
        )}
      </p>
    </li>
  )
}

function Devices({ token: { id, name }, isYou }: { token: Token; isYou: boolean }) {
  const { t } = useLingui()
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button variant="default" size="xs" aria-label={t`Devices of ${name}`} onClick={() => setOpen(true)}>
        <Trans>Devices</Trans>
      </Button>
      {isOpen && <SessionsDialog of={isYou ? null : { id, name }} onClose={() => setOpen(false)} />}
    </>
  )
}

function Revoke({ token: { id, name } }: { token: Token }) {
  const { t } = useLingui()
  const [isAsking, setAsking] = useState(false)
  const { revoke } = useAccessActions()
  const run = () =>
    revoke.mutate(id, {
      onSuccess: () => showToast(t`${name} has no access any more.`),
      onError: (error) => showFailure(t`The access could not be taken away`, error),
    })
  return (
    <>
      <Button
        variant="default"
        size="xs"
        loading={revoke.isPending}
        aria-label={t`Take access from ${name}`}
        onClick={() => setAsking(true)}
      >
        <Trans>Take access away</Trans>
      </Button>
      <Confirm
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        onConfirm={run}
        title={t`Take access from ${name}?`}
        text={t`It ends at once, also whatever is open at this moment. To undo this you need a new invitation.`}
        action={t`Take access away`}
      />
    </>
  )
}
