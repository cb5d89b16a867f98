import { useLingui } from '@lingui/react/macro'
import { useComputedColorScheme, useMantineColorScheme } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useLocation } from 'wouter'
import type { PowerAction, Scope, Server } from '../../../../src/sdk/index.ts'
import { useMay, useMayCreate, useReachesAll } from '../../api/access/session.ts'
import { client } from '../../api/client.ts'
import { useServers } from '../../api/servers.ts'
import type { IconName } from '../../components/icon.tsx'
import { POSSIBLE_ACTIONS, POWER_ACTIONS } from '../../components/power-buttons.tsx'
import { showFailure, showToast } from '../../components/toasts.tsx'
import type { PaletteItem } from './palette-search.ts'

export interface PaletteCommand extends PaletteItem {
  icon: IconName
  hint: string
  run: () => void
}

/** Everything that can be gone to or done from here, by whoever is signed in. */
export function useCommands(): PaletteCommand[] {
  const { data: servers = [] } = useServers()
  const pages = usePageCommands()
  const forServer = useServerCommands()
  const forPower = usePowerCommands()
  return [...pages, ...servers.flatMap((server) => [...forServer(server), ...forPower(server)])]
}

function usePageCommands(): PaletteCommand[] {
  const { t } = useLingui()
  const [, navigate] = useLocation()
  const may = useMay()
  const mayCreate = useMayCreate()
  const reachesAll = useReachesAll()
  const { setColorScheme } = useMantineColorScheme()
  const isDark = useComputedColorScheme('light') === 'dark'
  const page = (href: string, icon: IconName, title: string, isOffered = true) => ({
    ...{ id: href, title, keywords: t`page`, isOffered, icon, hint: t`Page` },
    run: () => navigate(href),
  })
  return [
    page('/', 'server', t`Servers`),
    ...(mayCreate ? [page('/servers/new', 'plus', t`New server`)] : []),
    ...(may('tokens:admin') ? [page('/people', 'users', t`Sharing`)] : []),
    ...(reachesAll
      ? [
          page('/instance', 'gauge', t`Instance`),
          page('/instance/templates', 'grid', t`Templates`, false),
          page('/instance/zones', 'globe', t`Zones`, false),
          page('/instance/tokens', 'key', t`Tokens`, false),
        ]
      : []),
    {
      id: 'colours',
      title: isDark ? t`Light colours` : t`Dark colours`,
      keywords: t`theme`,
      isOffered: false,
      icon: isDark ? 'sun' : 'moon',
      hint: t`Appearance`,
      run: () => setColorScheme(isDark ? 'light' : 'dark'),
    },
  ]
}

function useServerCommands(): (server: Server) => PaletteCommand[] {
  const { t } = useLingui()
  const [, navigate] = useLocation()
  const may = useMay()
  const tabs: { path: string; icon: IconName; name: string; scope: Scope }[] = [
    { path: '/files', icon: 'folder', name: t`Files`, scope: 'files:read' },
    { path: '/backups', icon: 'archive', name: t`Backups`, scope: 'backups:read' },
    { path: '/names', icon: 'globe', name: t`Names`, scope: 'subdomains:read' },
    { path: '/activity', icon: 'activity', name: t`Activity`, scope: 'activity:read' },
    { path: '/settings', icon: 'sliders', name: t`Settings`, scope: 'servers:read' },
  ]
  return ({ id, name, game }) => {
    const base = `/servers/${id}`
    const open = {
      id: base,
      title: name,
      keywords: game ?? '',
      isOffered: true,
      icon: 'console',
      hint: t`Server`,
    } as const
    return [
      { ...open, run: () => navigate(base) },
      ...tabs
        .filter(({ scope }) => may(scope))
        .map(({ path, icon, name: tab }) => ({
          ...{ id: base + path, title: `${name}: ${tab}`, keywords: '', isOffered: false, icon, hint: t`Server` },
          run: () => navigate(base + path),
        })),
    ]
  }
}

function usePowerCommands(): (server: Server) => PaletteCommand[] {
  const { t } = useLingui()
  const may = useMay()
  const queries = useQueryClient()
  const act = async (server: Server, action: PowerAction) => {
    try {
      await client.power.act(server.id, action)
      showToast(`${server.name}: ${t(POWER_ACTIONS[action].label)}`)
      await queries.invalidateQueries({ queryKey: ['servers'] })
      await queries.invalidateQueries({ queryKey: ['server', server.id] })
    } catch (error) {
      showFailure(`${server.name}: ${t(POWER_ACTIONS[action].failure)}`, error)
    }
  }
  return (server) => {
    if (!may('power:write') || server.status !== 'ready') return []
    // Killing loses what was not saved: it is asked for on the page of the server only.
    const actions = POSSIBLE_ACTIONS[server.power.state].filter((action) => action !== 'kill')
    return actions.map((action) => ({
      id: `${action} ${server.id}`,
      title: `${t(POWER_ACTIONS[action].label)}: ${server.name}`,
      keywords: '',
      isOffered: false,
      icon: POWER_ACTIONS[action].icon,
      hint: t`Power`,
      run: () => void act(server, action),
    }))
  }
}
