import { Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import { useState } from 'react'
import { Link, Redirect } from 'wouter'
import { takeArrival } from '../../api/access/arrival.ts'
import { useSession, useSignIn } from '../../api/access/session.ts'
import { Empty } from '../../components/empty.tsx'
import { SignInProblem } from './sign-in-problem.tsx'

/** A link was opened by somebody who is signed in already. It does not make them somebody else without a question. */
export function ArrivedPage() {
  const { t } = useLingui()
  // Gone with the page: who leaves it has declined.
  const [credential] = useState(takeArrival)
  const { data: session } = useSession()
  const signIn = useSignIn()
  const accept = () => {
    // From the beginning: nothing that was open for the other one stays.
    if (credential) signIn.mutate(credential, { onSuccess: () => location.assign('/') })
  }
  if (!credential) return <Redirect to="/" replace />
  return (
    <div className="card">
      <Empty icon="key" title={t`You are signed in as ${session?.name ?? ''}`}>
        <p>
          <Trans>This link signs this browser in as somebody else. It is good only once.</Trans>
        </p>
        {signIn.error && <SignInProblem error={signIn.error} credential={signIn.variables} />}
        <div className="row">
          {!signIn.error && (
            <Button onClick={accept} loading={signIn.isPending}>
              <Trans>Use the link</Trans>
            </Button>
          )}
          <Button component={Link} href="/" variant="default">
            <Trans>Stay signed in</Trans>
          </Button>
        </div>
      </Empty>
    </div>
  )
}
