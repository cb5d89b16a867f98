import { useLingui } from '@lingui/react/macro'
import { ActionIcon, TextInput, Tooltip } from '@mantine/core'
import { type RefObject, useState } from 'react'
import { copyText } from '../../../components/copy-button.tsx'
import { Icon } from '../../../components/icon.tsx'
import { saveFile } from '../../../components/save-file.ts'
import { showToast } from '../../../components/toasts.tsx'
import css from './console.module.css'
import type { ConsoleFeed } from './console-feed.ts'
import type { ConsoleTerminal } from './terminal.ts'
import { plainText } from './terminal-text.ts'

interface FindProps {
  /** Whether it was found. */
  onFind: (text: string, direction: 'next' | 'previous') => Promise<boolean>
}

export function FindField({ onFind }: FindProps) {
  const { t } = useLingui()
  const [text, setText] = useState('')
  const [isMissing, setMissing] = useState(false)
  const find = async (direction: 'next' | 'previous') => {
    if (text !== '') setMissing(!(await onFind(text, direction)))
  }
  return (
    <TextInput
      className={css.find}
      size="xs"
      type="search"
      aria-label={t`Find in the console`}
      placeholder={t`Find`}
      title={t`Enter goes up from the newest line, also before earlier starts; Shift and Enter down`}
      leftSection={<Icon name="search" size={14} />}
      value={text}
      maxLength={191}
      error={isMissing}
      onChange={(event) => {
        setText(event.currentTarget.value)
        setMissing(false)
      }}
      onKeyDown={(event) => event.key === 'Enter' && void find(event.shiftKey ? 'next' : 'previous')}
    />
  )
}

interface ToolsProps {
  feed: RefObject<ConsoleFeed | null>
  terminal: RefObject<ConsoleTerminal | null>
}

/** Copies what is selected, or everything that is here; saves everything that is here. */
export function ConsoleTools({ feed, terminal }: ToolsProps) {
  const { t } = useLingui()
  const allLines = () => (feed.current?.lines ?? []).map((line) => `${line.at} ${plainText(line.text)}\n`).join('')
  const copy = async () => {
    const selected = terminal.current?.selection() ?? ''
    await copyText(selected === '' ? allLines() : selected)
    showToast(selected === '' ? t`All lines that are here are copied.` : t`The selected lines are copied.`)
  }
  const save = () => saveFile('console.txt', new Blob([allLines()], { type: 'text/plain' }))
  return (
    <>
      <Tooltip label={t`Copy the selection, or all lines`}>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={t`Copy the selection, or all lines`}
          onClick={() => void copy()}
        >
          <Icon name="copy" size={16} />
        </ActionIcon>
      </Tooltip>
      <Tooltip label={t`Save these lines as a file`}>
        <ActionIcon variant="subtle" color="gray" aria-label={t`Save these lines as a file`} onClick={save}>
          <Icon name="download" size={16} />
        </ActionIcon>
      </Tooltip>
    </>
  )
}
