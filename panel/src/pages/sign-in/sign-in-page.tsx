import { Trans, useLingui } from '@lingui/react/macro'
import { Button, PasswordInput } from '@mantine/core'
import { useEffect, useState } from 'react'
import { takeArrival } from '../../api/access/arrival.ts'
import { useSignIn } from '../../api/access/session.ts'
import { Brand } from '../../components/brand.tsx'
import { chooseLocale, LOCALES, type Locale } from '../../i18n/i18n.ts'
import css from './sign-in-page.module.css'
import { SignInProblem } from './sign-in-problem.tsx'

export function SignInPage() {
  const { t, i18n } = useLingui()
  const signIn = useSignIn()
  const [token, setToken] = useState('')
  const { mutate } = signIn
  useEffect(() => {
    const credential = takeArrival()
    if (credential) mutate(credential)
  }, [mutate])
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    if (token.trim() !== '') mutate({ token: token.trim() })
  }
  return (
    <main className={css.page}>
      <div className={`card ${css.card}`}>
        <Brand />
        <div>
          <h1>
            <Trans>Welcome back</Trans>
          </h1>
          <p className="soft">
            <Trans>Sign in with your token, or open the link that you were given.</Trans>
          </p>
        </div>
        <form onSubmit={submit} className="stack">
          {/* Password managers want a name beside a password. */}
          <input type="text" autoComplete="username" value="gamekeeper" readOnly hidden />
          <PasswordInput
            label={t`Token`}
            placeholder="gk_…"
            value={token}
            onChange={(event) => setToken(event.currentTarget.value)}
            autoComplete="current-password"
            size="md"
            data-autofocus
            visibilityToggleButtonProps={{ 'aria-label': t`Show the token` }}
          />
          {signIn.error && <SignInProblem error={signIn.error} credential={signIn.variables} />}
          <Button
            type="submit"
            size="md"
            loading={signIn.isPending}
            disabled={token.trim() === '' && !signIn.isPending}
          >
            <Trans>Sign in</Trans>
          </Button>
        </form>
        <p className="small faint">
          <Trans>
            On the machine of the service, <span className="mono">gamekeeper token create</span> makes a new token.
          </Trans>
        </p>
      </div>
      <div className={css.languages}>
        {Object.entries(LOCALES).map(([locale, name]) => (
          <button
            key={locale}
            type="button"
            lang={locale}
            aria-pressed={locale === i18n.locale}
            onClick={() => void chooseLocale(locale as Locale)}
          >
            {name}
          </button>
        ))}
      </div>
    </main>
  )
}
