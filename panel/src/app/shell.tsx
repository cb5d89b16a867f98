import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Skeleton } from '@mantine/core'
import { type ReactNode, useEffect, useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { SignedIn } from '../../../src/sdk/index.ts'
import { useServers } from '../api/servers.ts'
import { useMay } from '../api/session.ts'
import { Brand } from '../components/brand.tsx'
import { Icon } from '../components/icon.tsx'
import { StateDot } from '../components/power-state.tsx'
import { AccountMenu } from './account-menu.tsx'
import css from './shell.module.css'

/** The servers that the side lists; the servers page has all of them. */
const LISTED_AT_MOST = 30

export function Shell({ session, children }: { session: SignedIn; children: ReactNode }) {
  const { t } = useLingui()
  const [location] = useLocation()
  const [isOpen, setOpen] = useState(false)
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
        <Brand />
      </header>
      <div className={css.side} data-open={isOpen || undefined}>
        <div className={css.brand}>
          <Brand />
        </div>
        <ServerNavigation />
        <AccountMenu session={session} />
      </div>
      <main id="main" className={css.main} tabIndex={-1}>
        {children}
      </main>
    </div>
  )
}

function ServerNavigation() {
  const { t } = useLingui()
  const [location] = useLocation()
  const { data: servers = [] } = useServers()
  const may = useMay()
  const isCurrent = (id: string) => location === `/servers/${id}` || location.startsWith(`/servers/${id}/`)
  return (
    <nav className={css.navigation} aria-label={t`Main`}>
      <Link href="/" className={css.link} aria-current={location === '/' ? 'page' : undefined}>
        <Icon name="server" />
        <Trans>Servers</Trans>
      </Link>
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
      {may('servers:write') && (
        <Link href="/servers/new" className={css.link} aria-current={location === '/servers/new' ? 'page' : undefined}>
          <Icon name="plus" />
          <Trans>New server</Trans>
        </Link>
      )}
    </nav>
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
