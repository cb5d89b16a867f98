import { Trans, useLingui } from '@lingui/react/macro'
import { Menu, UnstyledButton, useComputedColorScheme, useMantineColorScheme } from '@mantine/core'
import { Suspense, useState } from 'react'
import type { SignedIn } from '../../../src/sdk/index.ts'
import { useSignOut } from '../api/access/session.ts'
import { Icon } from '../components/icon.tsx'
import { lazyPart } from '../components/lazy-part.ts'
import { chooseLocale, LOCALES, type Locale } from '../i18n/i18n.ts'
import { DeviceLink } from './device-link.tsx'
import css from './shell.module.css'

const SessionsDialog = lazyPart(() => import('../pages/people/sessions/sessions-dialog.tsx'))

export function AccountMenu({ session }: { session: SignedIn }) {
  const { i18n } = useLingui()
  const { setColorScheme } = useMantineColorScheme()
  const isDark = useComputedColorScheme('light') === 'dark'
  const signOut = useSignOut()
  const [isLinking, setLinking] = useState(false)
  const [isListing, setListing] = useState(false)
  return (
    <>
      <Menu position="top-start" width={220}>
        <Menu.Target>
          <UnstyledButton className={css.account}>
            <span className={css.avatar} aria-hidden="true">
              {session.name.slice(0, 1).toUpperCase()}
            </span>
            <span className="cut grow">{session.name}</span>
            <Icon name="dots" />
          </UnstyledButton>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<Icon name={isDark ? 'sun' : 'moon'} size={16} />}
            onClick={() => setColorScheme(isDark ? 'light' : 'dark')}
          >
            {isDark ? <Trans>Light colours</Trans> : <Trans>Dark colours</Trans>}
          </Menu.Item>
          {Object.entries(LOCALES)
            .filter(([locale]) => locale !== i18n.locale)
            .map(([locale, name]) => (
              <Menu.Item
                key={locale}
                lang={locale}
                leftSection={<Icon name="language" size={16} />}
                onClick={() => void chooseLocale(locale as Locale)}
              >
                {name}
              </Menu.Item>
            ))}
          <Menu.Item leftSection={<Icon name="key" size={16} />} onClick={() => setLinking(true)}>
            <Trans>Sign in on another device</Trans>
          </Menu.Item>
          <Menu.Item leftSection={<Icon name="laptop" size={16} />} onClick={() => setListing(true)}>
            <Trans>Where you are signed in</Trans>
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item leftSection={<Icon name="signOut" size={16} />} onClick={() => signOut.mutate()}>
            <Trans>Sign out</Trans>
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {isLinking && <DeviceLink onClose={() => setLinking(false)} />}
      {isListing && (
        <Suspense>
          <SessionsDialog of={null} onClose={() => setListing(false)} />
        </Suspense>
      )}
    </>
  )
}
