import { useLingui } from '@lingui/react/macro'
import { isApiError, type NewSession } from '../../../../src/sdk/index.ts'
import { Problem } from '../../components/problem.tsx'

export function SignInProblem({ error, credential }: { error: Error; credential: NewSession | undefined }) {
  const { t } = useLingui()
  if (!isApiError(error, 'unauthenticated')) return <Problem error={error} />
  if (credential?.token !== undefined) return <Problem error={new Error(t`This token is not valid, or was revoked.`)} />
  return <Problem error={new Error(t`This link was used already, or is too old. Ask for a new one.`)} />
}
