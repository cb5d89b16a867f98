import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useState } from 'react'
import { useInvitations, useTokens } from '../../api/access/people.ts'
import { useMay } from '../../api/access/session.ts'
import { Empty } from '../../components/empty.tsx'
import { Icon } from '../../components/icon.tsx'
import { PageTitle } from '../../components/page-title.tsx'
import { Problem } from '../../components/problem.tsx'
import { InvitationRow } from './invitation-row.tsx'
import { InviteDialog } from './invite-dialog.tsx'
import css from './people-page.module.css'
import { PersonRow } from './person-row.tsx'

export default function PeoplePage() {
  const { t } = useLingui()
  const may = useMay()
  const [isInviting, setInviting] = useState(false)
  if (!may('tokens:admin')) {
    return (
      <Empty icon="users" title={t`You cannot invite anybody`}>
        <p>
          <Trans>Ask whoever invited you to share a server with somebody else.</Trans>
        </p>
      </Empty>
    )
  }
  return (
    <div className="stack">
      <PageTitle title={t`Sharing`}>
        <Button leftSection={<Icon name="mail" size={16} />} onClick={() => setInviting(true)}>
          <Trans>Invite somebody</Trans>
        </Button>
      </PageTitle>
      <p className="soft">
        <Trans>
          A friend gets a link that is good once, for a day. It opens the servers that you choose, with the rights that
          you choose.
        </Trans>
      </p>
      <Invitations />
      <People />
      <InviteDialog isOpen={isInviting} onClose={() => setInviting(false)} />
    </div>
  )
}

function Invitations() {
  const { data: invitations = [], error } = useInvitations()
  if (error) return <Problem error={error} />
  if (invitations.length === 0) return null
  return (
    <>
      <h2>
        <Trans>Invited, not here yet</Trans>
      </h2>
      <ul className={`card ${css.list}`}>
        {invitations.map((invitation) => (
          <InvitationRow key={invitation.id} invitation={invitation} />
        ))}
      </ul>
    </>
  )
}

function People() {
  const { data: tokens, error, refetch } = useTokens()
  return (
    <>
      <h2>
        <Trans>People and programs with access</Trans>
      </h2>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!tokens && !error && <Skeleton height={140} radius="md" />}
      {tokens && (
        <ul className={`card ${css.list}`}>
          {tokens.map((token) => (
            <PersonRow key={token.id} token={token} />
          ))}
        </ul>
      )}
    </>
  )
}
