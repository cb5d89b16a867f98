import { Skeleton } from '@mantine/core'
import { Suspense } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { lazyPart } from '../components/lazy-part.ts'
import { NotFound } from '../components/not-found.tsx'
import { ServersPage } from '../pages/servers/servers-page.tsx'
import { ArrivedPage } from '../pages/sign-in/arrived-page.tsx'
import { ErrorBoundary } from './error-boundary.tsx'

// The first page is in the first load; every other page comes with the first visit.
const NewServerPage = lazyPart(() => import('../pages/new-server/new-server-page.tsx'))
const InstancePage = lazyPart(() => import('../pages/instance/instance-page.tsx'))
const PeoplePage = lazyPart(() => import('../pages/people/people-page.tsx'))
const ServerPage = lazyPart(() => import('../pages/server/server-page.tsx'))

export function Pages() {
  const [location] = useLocation()
  return (
    <ErrorBoundary resetKey={location}>
      <Suspense fallback={<Skeleton height={180} radius="md" />}>
        <Switch>
          <Route path="/" component={ServersPage} />
          {/* Where links lead whoever is signed in already. */}
          <Route path="/sign-in" component={ArrivedPage} />
          <Route path="/join" component={ArrivedPage} />
          <Route path="/people" component={PeoplePage} />
          <Route path="/instance/*?" component={InstancePage} />
          <Route path="/servers/new/:templateId?">
            {({ templateId }) => <NewServerPage templateId={templateId ?? null} />}
          </Route>
          <Route path="/servers/:serverId/*?">
            {({ serverId }) => <ServerPage key={serverId} serverId={serverId ?? ''} />}
          </Route>
          <Route component={NotFound} />
        </Switch>
      </Suspense>
    </ErrorBoundary>
  )
}
