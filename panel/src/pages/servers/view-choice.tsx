import { useLingui } from '@lingui/react/macro'
import { ActionIcon, Tooltip } from '@mantine/core'
import { useState } from 'react'
import { Icon } from '../../components/icon.tsx'
import css from './servers-page.module.css'

export type ServersView = 'cards' | 'table'
const KEY = 'gamekeeper-servers-view'

export function useServersView(): [ServersView, (view: ServersView) => void] {
  const [view, setView] = useState<ServersView>(readView)
  const choose = (chosen: ServersView) => {
    setView(chosen)
    try {
      localStorage.setItem(KEY, chosen)
    } catch {
      // Storage is switched off: the choice holds for this page.
    }
  }
  return [view, choose]
}

function readView(): ServersView {
  try {
    return localStorage.getItem(KEY) === 'table' ? 'table' : 'cards'
  } catch {
    return 'cards'
  }
}

export function ViewChoice({ view, onChange }: { view: ServersView; onChange: (view: ServersView) => void }) {
  const { t } = useLingui()
  const choices = [
    { value: 'cards', icon: 'grid', label: t`Cards` },
    { value: 'table', icon: 'rows', label: t`Table` },
  ] as const
  return (
    <div className={css.views}>
      {choices.map(({ value, icon, label }) => (
        <Tooltip key={value} label={label}>
          <ActionIcon
            variant={view === value ? 'light' : 'subtle'}
            color={view === value ? 'moss' : 'gray'}
            size="lg"
            aria-label={label}
            aria-pressed={view === value}
            onClick={() => onChange(value)}
          >
            <Icon name={icon} size={17} />
          </ActionIcon>
        </Tooltip>
      ))}
    </div>
  )
}
