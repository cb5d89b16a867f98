import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Skeleton, UnstyledButton } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { type ReactNode, Suspense, useEffect, useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { SignedIn } from '../../../src/sdk/index.ts'
import { useMay, useMayCreate, useReachesAll } from '../api/access/session.ts'
import { useServers } from '../api/servers.ts'
import { Brand } from '../components/brand.tsx'
import { Icon, type IconName } from '../components/icon.tsx'
import { lazyPart } from '../components/lazy-part.ts'
import { StateDot } from '../components/power-state.tsx'
import { AccountMenu } from './account-menu.tsx'
import css from './shell.module.css'

const Palette = lazyPart(() => import('./palette/palette.tsx'))

/** The servers that the side lists; the servers page has all of them. */
const LISTED_AT_MOST = 30
const KEYS = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘K' : 'Ctrl K'

export function Shell({ session, children }: { session: SignedIn; children: ReactNode }) {
  const { t } = useLingui()
  const [location] = useLocation()
  const [isOpen, setOpen] = useState(false)
  const [isSearching, setSearching] = useState(false)
  // Also while somebody types somewhere: that is where it is needed most.
  useHotkeys([['mod+K', () => setSearching(true)]], [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: whoever goes to another page has found what they looked for
  useEffect(() => setOpen(false), [location])
  return (
    <div className={css.shell}>
      <a className={css.skip} href="#main">
        <Trans>Skip to the content</Trans>
      </a>
      <header className={css.bar}>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={t`Navigation`}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? 'close' : 'menu'} size={22} />
        </ActionIcon>
        <div className="grow">
          <Brand />
        </div>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t`Search`} onClick={() => setSearching(true)}>
          <Icon name="search" size={20} />
        </ActionIcon>
      </header>
      <div className={css.side} data-open={isOpen || undefined}>
        <div className={css.brand}>
          <Brand />
        </div>
        <UnstyledButton className={css.search} onClick={() => setSearching(true)}>
          <Icon name="search" size={16} />
          <span className="grow">
            <Trans>Search</Trans>
          </span>
          <kbd>{KEYS}</kbd>
        </UnstyledButton>
        <Navigation />
        <AccountMenu session={session} />
      </div>
      <main id="main" className={css.main} tabIndex={-1}>
        {children}
      </main>
      {isSearching && (
        <Suspense>
          <Palette onClose={() => setSearching(false)} />
        </Suspense>
      )}
    </div>
  )
}

function Navigation() {
  const { t } = useLingui()
  const may = useMay()
  const mayCreate = useMayCreate()
  const reachesAll = useReachesAll()
  return (
    <nav className={css.navigation} aria-label={t`Main`}>
      <PageLink href="/" icon="server" name={t`Servers`} />
      <ServerLinks />
      {mayCreate && <PageLink href="/servers/new" icon="plus" name={t`New server`} />}
      {(may('tokens:admin') || reachesAll) && <hr className={css.divider} />}
      {may('tokens:admin') && <PageLink href="/people" icon="users" name={t`Sharing`} />}
      {reachesAll && <PageLink href="/instance" icon="gauge" name={t`Instance`} />}
    </nav>
  )
}

function PageLink({ href, icon, name }: { href: string; icon: IconName; name: string }) {
  const [location] = useLocation()
  const isCurrent = location === href || (href !== '/' && location.startsWith(`${href}/`))
  return (
    <Link href={href} className={css.link} aria-current={isCurrent ? 'page' : undefined}>
      <Icon name={icon} />
      {name}
    </Link>
  )
}

function ServerLinks() {
  const [location] = useLocation()
  const { data: servers = [] } = useServers()
  const isCurrent = (id: string) => location === `/servers/${id}` || location.startsWith(`/servers/${id}/`)
  return (
    <ul className={css.servers}>
      {servers.slice(0, LISTED_AT_MOST).map(({ id, name, power }) => (
        <li key={id}>
          <Link href={`/servers/${id}`} className={css.link} aria-current={isCurrent(id) ? 'page' : undefined}>
            <span className={css.dot}>
              <StateDot state={power.state} />
            </span>
            <span className="cut">{name}</span>
          </Link>
        </li>
      ))}
    </ul>
  )
}

export function ShellSkeleton() {
  return (
    <div className={css.shell} aria-busy="true">
      <div className={css.side}>
        <div className={css.brand}>
          <Brand />
        </div>
      </div>
      <div className={css.main}>
        <Skeleton height={32} width={180} mb="lg" />
        <Skeleton height={180} />
      </div>
    </div>
  )
}
