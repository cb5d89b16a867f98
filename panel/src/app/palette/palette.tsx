import { Trans, useLingui } from '@lingui/react/macro'
import { Modal } from '@mantine/core'
import { useId, useState } from 'react'
import { Icon } from '../../components/icon.tsx'
import css from './palette.module.css'
import { type PaletteCommand, useCommands } from './palette-commands.ts'
import { searchItems } from './palette-search.ts'

/** Everything by a few letters: servers, their tabs, pages, and power. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const { t } = useLingui()
  return (
    // What the theme says of dialogs does not reach their parts.
    <Modal.Root
      opened
      onClose={onClose}
      lockScroll={false}
      yOffset="12vh"
      size={580}
      transitionProps={{ duration: 80 }}
    >
      <Modal.Overlay />
      <Modal.Content aria-label={t`Search`} className={css.content}>
        <Search onClose={onClose} />
      </Modal.Content>
    </Modal.Root>
  )
}

function Search({ onClose }: { onClose: () => void }) {
  const { t } = useLingui()
  const commands = useCommands()
  const [search, setSearch] = useState('')
  const [index, setIndex] = useState(0)
  const listId = useId()
  const found = searchItems(commands, search)
  const current = Math.min(index, found.length - 1)
  const run = (command: PaletteCommand | undefined) => {
    if (!command) return
    onClose()
    command.run()
  }
  const onKeyDown = (event: React.KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined && event.key !== 'Enter') return
    event.preventDefault()
    if (step === undefined) run(found[current])
    else if (found.length > 0) setIndex((current + step + found.length) % found.length)
  }
  return (
    <>
      <div className={css.field}>
        <Icon name="search" />
        <input
          className={css.input}
          type="text"
          role="combobox"
          aria-label={t`Search servers, pages and actions`}
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={found[current] && `${listId}-${current}`}
          placeholder={t`Server, page or action`}
          autoComplete="off"
          data-autofocus
          value={search}
          onChange={(event) => {
            setSearch(event.currentTarget.value)
            setIndex(0)
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      <div className={css.list} role="listbox" id={listId} aria-label={t`Found`}>
        {found.map((command, position) => (
          <Option
            key={command.id}
            id={`${listId}-${position}`}
            command={command}
            isCurrent={position === current}
            onPoint={() => setIndex(position)}
            onChoose={() => run(command)}
          />
        ))}
      </div>
      {found.length === 0 && (
        <p className={`soft ${css.none}`}>
          <Trans>Nothing found.</Trans>
        </p>
      )}
    </>
  )
}

interface OptionProps {
  id: string
  command: PaletteCommand
  isCurrent: boolean
  onPoint: () => void
  onChoose: () => void
}

function Option({ id, command, isCurrent, onPoint, onChoose }: OptionProps) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
    <div
      id={id}
      className={css.option}
      role="option"
      tabIndex={-1}
      aria-selected={isCurrent}
      onMouseMove={onPoint}
      onClick={onChoose}
    >
      <Icon name={command.icon} size={17} />
      <span className="cut grow">{command.title}</span>
      <span className="small faint">{command.hint}</span>
    </div>
  )
}
