import { useEffect, useRef } from 'react'
import { Link, useLocation } from 'wouter'
import { Icon, type IconName } from './icon.tsx'
import css from './tab-links.module.css'

export interface TabLink {
  href: string
  icon: IconName
  name: string
}

/** Tabs with addresses of their own. The first is where the others begin, so it is current only by itself. */
export function TabLinks({ label, tabs }: { label: string; tabs: readonly TabLink[] }) {
  const [location] = useLocation()
  const isCurrent = (href: string) => (href === tabs[0]?.href ? location === href : location.startsWith(href))
  const nav = useRef<HTMLElement>(null)
  // Where the tabs are wider than the screen, the open one is in sight.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the open one changes with the location
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [location])
  return (
    <nav ref={nav} className={css.tabs} aria-label={label}>
      {tabs.map(({ href, icon, name }) => (
        <Link key={href} href={href} className={css.tab} aria-current={isCurrent(href) ? 'page' : undefined}>
          <Icon name={icon} size={16} />
          {name}
        </Link>
      ))}
    </nav>
  )
}
