import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import type { Session } from '../../../../../src/sdk/index.ts'
import { useSessionActions, useSessions } from '../../../api/access/sessions.ts'
import { Dialog } from '../../../components/dialog.tsx'
import { Icon } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import { Problem } from '../../../components/problem.tsx'
import { showFailure, showToast } from '../../../components/toasts.tsx'
import css from '../people-page.module.css'
import { browserName } from './browser-name.ts'

interface Props {
  /** Null: whoever is signed in. */
  of: { id: string; name: string } | null
  onClose: () => void
}

/** Where somebody is signed in, each with a way to end it. */
export default function SessionsDialog({ of, onClose }: Props) {
  const { t } = useLingui()
  const title = of ? t`Where ${of.name} is signed in` : t`Where you are signed in`
  return (
    <Dialog opened onClose={onClose} title={title} size="lg">
      <Sessions of={of} />
    </Dialog>
  )
}

function Sessions({ of }: Pick<Props, 'of'>) {
  const { t } = useLingui()
  const tokenId = of?.id ?? null
  const { data: sessions, error, refetch } = useSessions(tokenId)
  const { endOthers } = useSessionActions(tokenId)
  if (!sessions) {
    return error ? <Problem error={error} onRetry={() => void refetch()} /> : <Skeleton height={120} radius="md" />
  }
  const others = sessions.filter(({ isCurrent }) => !isCurrent)
  const run = () =>
    endOthers.mutate(undefined, {
      onSuccess: () => showToast(of ? t`${of.name} is signed out everywhere.` : t`You are signed out everywhere else.`),
      onError: (failure) => showFailure(t`The sessions could not be ended`, failure),
    })
  return (
    <div className="stack">
      {sessions.length === 0 && (
        <p className="soft">
          <Trans>Nowhere at the moment.</Trans>
        </p>
      )}
      <ul className={`${css.list} ${css.inDialog}`}>
        {sessions.map((session) => (
          <SessionRow key={session.id} session={session} tokenId={tokenId} />
        ))}
      </ul>
      {of && (
        <p className="small soft">
          <Trans>
            Ending these does not take the access away: a token or a link signs in again. Whoever came by an invitation
            has neither, and needs another one.
          </Trans>
        </p>
      )}
      {others.length > 0 && (
        <div className="row">
          <Button variant="default" loading={endOthers.isPending} onClick={run}>
            {of ? <Trans>Sign out everywhere</Trans> : <Trans>Sign out everywhere else</Trans>}
          </Button>
        </div>
      )}
    </div>
  )
}

function SessionRow({ session, tokenId }: { session: Session; tokenId: string | null }) {
  const { t } = useLingui()
  const { end } = useSessionActions(tokenId)
  const { id, isCurrent, userAgent, ip, lastUsedAt, createdAt } = session
  const { browser, system, isPhone } = browserName(userAgent ?? '')
  const name = [browser, system].filter((each) => each !== null).join(' · ') || userAgent || t`Unknown browser`
  const run = () => end.mutate(id, { onError: (error) => showFailure(t`The session could not be ended`, error) })
  return (
    <li className={css.person}>
      <span className={css.avatar} title={userAgent ?? ''}>
        <Icon name={isPhone ? 'phone' : 'laptop'} />
      </span>
      <div className="grow">
        <p className={css.name}>
          <strong className="cut">{name}</strong>
          {isCurrent && (
            <span className={css.you}>
              <Trans>this one</Trans>
            </span>
          )}
        </p>
        <p className="small soft">
          <Trans>
            Last seen: <Moment at={lastUsedAt} />
          </Trans>
          {' · '}
          <Trans>
            Signed in <Moment at={createdAt} />
          </Trans>
          {ip !== null && (
            <>
              {' · '}
              <span className="mono">{ip}</span>
            </>
          )}
        </p>
      </div>
      {!isCurrent && (
        <Button
          variant="default"
          size="xs"
          loading={end.isPending}
          aria-label={t`End the session ${name}`}
          onClick={run}
        >
          <Trans>End</Trans>
        </Button>
      )}
    </li>
  )
}
