import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Button, TextInput, Tooltip } from '@mantine/core'
import { type RefObject, useEffect, useRef, useState } from 'react'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/session.ts'
import { Icon } from '../../../components/icon.tsx'
import { Problem } from '../../../components/problem.tsx'
import { saveFile } from '../../../components/save-file.ts'
import { CommandInput } from './command-input.tsx'
import css from './console.module.css'
import { type ConsoleFeed, openConsoleFeed } from './console-feed.ts'
import { type ConsoleTerminal, createTerminal } from './terminal.ts'
import { plainText } from './terminal-text.ts'

type FeedState = Parameters<Parameters<typeof openConsoleFeed>[2]['onState']>[0]

export default function Console({ server }: { server: Server }) {
  const { t, i18n } = useLingui()
  const may = useMay()
  const host = useRef<HTMLDivElement>(null)
  const terminal = useRef<ConsoleTerminal>(null)
  const feed = useRef<ConsoleFeed>(null)
  const [state, setState] = useState<FeedState>('loading')
  const [isFollowing, setFollowing] = useState(true)
  const [hasOlder, setOlder] = useState(false)

  useEffect(() => {
    if (!host.current) return
    const opened = createTerminal(host.current, { locale: i18n.locale, onFollowing: setFollowing })
    terminal.current = opened
    const lines = openConsoleFeed(server.id, opened, { onState: setState, onOlder: setOlder })
    feed.current = lines
    return () => {
      lines.close()
      opened.dispose()
    }
  }, [server.id, i18n.locale])

  return (
    <section className={css.console} aria-label={t`Console`}>
      <div className={css.bar}>
        <h2 className={css.title}>
          <Trans>Console</Trans>
        </h2>
        <span className={css.state} role="status">
          {state === 'lost' && <Trans>Connection lost, trying again…</Trans>}
        </span>
        {hasOlder && (
          <Button variant="subtle" color="gray" size="compact-sm" onClick={() => void feed.current?.readOlder()}>
            <Trans>Older lines</Trans>
          </Button>
        )}
        <Find terminal={terminal} />
        <SaveLines feed={feed} />
      </div>
      {typeof state === 'object' && <Problem error={state.error} />}
      <div className={css.screen}>
        <div ref={host} className={css.host} />
        {!isFollowing && (
          <Button
            className={css.follow}
            size="compact-sm"
            leftSection={<Icon name="arrowDown" size={14} />}
            onClick={() => terminal.current?.follow()}
          >
            <Trans>Newest</Trans>
          </Button>
        )}
      </div>
      {may('console:write') && (
        <CommandInput
          server={server}
          readHistory={() =>
            (feed.current?.lines ?? []).filter(({ source }) => source === 'command').map((line) => line.text)
          }
        />
      )}
    </section>
  )
}

function Find({ terminal }: { terminal: RefObject<ConsoleTerminal | null> }) {
  const { t } = useLingui()
  const [text, setText] = useState('')
  const [isMissing, setMissing] = useState(false)
  const find = (direction: 'next' | 'previous') => {
    if (text !== '') setMissing(terminal.current?.find(text, direction) === false)
  }
  return (
    <TextInput
      className={css.find}
      size="xs"
      type="search"
      aria-label={t`Find in the console`}
      placeholder={t`Find`}
      leftSection={<Icon name="search" size={14} />}
      value={text}
      error={isMissing}
      onChange={(event) => {
        setText(event.currentTarget.value)
        setMissing(false)
      }}
      // From the newest line upwards, as logs are read; Shift turns round.
      onKeyDown={(event) => event.key === 'Enter' && find(event.shiftKey ? 'next' : 'previous')}
    />
  )
}

function SaveLines({ feed }: { feed: RefObject<ConsoleFeed | null> }) {
  const { t } = useLingui()
  const save = () => {
    const text = (feed.current?.lines ?? []).map((line) => `${line.at} ${plainText(line.text)}\n`).join('')
    saveFile('console.txt', new Blob([text], { type: 'text/plain' }))
  }
  return (
    <Tooltip label={t`Save these lines as a file`}>
      <ActionIcon variant="subtle" color="gray" aria-label={t`Save these lines as a file`} onClick={save}>
        <Icon name="download" size={16} />
      </ActionIcon>
    </Tooltip>
  )
}
