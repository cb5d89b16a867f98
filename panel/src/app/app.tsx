import { i18n } from '@lingui/core'
import { I18nProvider } from '@lingui/react'
import { DirectionProvider, localStorageColorSchemeManager, MantineProvider } from '@mantine/core'
import { type QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { useSession } from '../api/access/session.ts'
import { Problem } from '../components/problem.tsx'
import { Toasts } from '../components/toasts.tsx'
import { SignInPage } from '../pages/sign-in/sign-in-page.tsx'
import { COLOR_SCHEME_KEY, theme } from '../theme/theme.ts'
import { ErrorBoundary } from './error-boundary.tsx'
import { Pages } from './routes.tsx'
import { Shell, ShellSkeleton } from './shell.tsx'

const colorSchemes = localStorageColorSchemeManager({ key: COLOR_SCHEME_KEY })

export function App({ queries }: { queries: QueryClient }) {
  return (
    <I18nProvider i18n={i18n}>
      {/* As the document has it: see i18n/pseudo.ts. */}
      <DirectionProvider>
        {/* The variables are in a style sheet of their own, and no class is made at runtime: see dev/theme-css.ts. */}
        <MantineProvider
          theme={theme}
          colorSchemeManager={colorSchemes}
          defaultColorScheme="auto"
          withCssVariables={false}
          withGlobalClasses={false}
        >
          <ErrorBoundary>
            <QueryClientProvider client={queries}>
              <Arrival />
              <Toasts />
            </QueryClientProvider>
          </ErrorBoundary>
        </MantineProvider>
      </DirectionProvider>
    </I18nProvider>
  )
}

function Arrival() {
  const { data: session, error, refetch } = useSession()
  if (session === null) return <SignInPage />
  if (session === undefined) {
    return error ? <Problem error={error} onRetry={() => void refetch()} /> : <ShellSkeleton />
  }
  return (
    <Shell session={session}>
      <Pages />
    </Shell>
  )
}
