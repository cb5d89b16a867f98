// Every dialog of the panel: on which page it is, and how it is opened there.
import type { Page } from 'playwright-core'

type Open = (page: Page) => Promise<void>

export interface PageWithDialogs {
  path: string
  /** A selector. */
  ready: string
  dialogs: Record<string, Open>
}

const button =
  (name: string | RegExp): Open =>
  (page) =>
    page.getByRole('button', { name }).first().click()

const menu =
  (name: string | RegExp, item: string): Open =>
  async (page) => {
    await page.getByRole('button', { name }).first().click()
    await page.getByRole('menuitem', { name: item }).click()
  }

const onFile =
  (name: string, open: Open): Open =>
  async (page) => {
    await page.getByRole('row', { name }).click()
    await open(page)
  }

const forSelected = (item: string) => menu('More for what is selected', item)
const press =
  (key: string): Open =>
  (page) =>
    page.keyboard.press(key)

/** `stoppedId`: a server whose game does not run, so that it can be deleted. */
export function dialogsOf(serverId: string, stoppedId: string): PageWithDialogs[] {
  const server = `/servers/${serverId}`
  return [
    {
      path: '/people',
      ready: 'main li',
      dialogs: {
        invite: button('Invite somebody'),
        'own sessions': menu('admin', 'Where you are signed in'),
        'link for a device': menu('admin', 'Sign in on another device'),
        palette: press('Control+k'),
      },
    },
    { path: '/instance/tokens', ready: 'main li', dialogs: { token: button('New token') } },
    {
      path: `${server}/files`,
      ready: '[role=grid]',
      dialogs: {
        'new folder': menu('New', 'New folder'),
        fetch: menu('New', 'From an address'),
        move: onFile('server.properties', forSelected('Move…')),
        mode: onFile('server.properties', forSelected('Mode…')),
        pack: onFile('server.properties', forSelected('Pack…')),
        unpack: onFile('world.zip', forSelected('Unpack…')),
        'rename several': onFile('world.zip', async (page) => {
          await page.keyboard.press('Control+a')
          await page.keyboard.press('F2')
        }),
      },
    },
    {
      path: `${server}/backups`,
      ready: 'main li',
      dialogs: {
        backup: button('Back up now'),
        restore: button('Restore'),
        'delete a backup': menu(/^More about Backup at/, 'Delete'),
      },
    },
    { path: `${server}/backups?show=plan`, ready: 'main form', dialogs: { schedule: button('New schedule') } },
    { path: `/servers/${stoppedId}/settings`, ready: 'main form', dialogs: { 'delete a server': button('Delete…') } },
  ]
}
