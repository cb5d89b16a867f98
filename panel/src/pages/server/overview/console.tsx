import { Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { Icon } from '../../../components/icon.tsx'
import { Problem } from '../../../components/problem.tsx'
import { showToast } from '../../../components/toasts.tsx'
import { CommandInput } from './command-input.tsx'
import css from './console.module.css'
import { type ConsoleFeed, type ConsoleSink, openConsoleFeed } from './console-feed.ts'
import { ConsoleTools, FindField } from './console-tools.tsx'
import { createSpokenLines } from './spoken-lines.ts'
import { type ConsoleTerminal, createTerminal } from './terminal.ts'

type FeedState = Parameters<Parameters<typeof openConsoleFeed>[2]['onState']>[0]

interface Props {
  server: Server
  /** The line to bring into sight. */
  wanted: { line: number } | null
}

export default function Console({ server, wanted }: Props) {
  const { t, i18n } = useLingui()
  const may = useMay()
  const host = useRef<HTMLDivElement>(null)
  const spoken = useRef<HTMLDivElement>(null)
  const terminal = useRef<ConsoleTerminal>(null)
  const feed = useRef<ConsoleFeed>(null)
  const [state, setState] = useState<FeedState>('loading')
  const [isFollowing, setFollowing] = useState(true)
  const [hasOlder, setOlder] = useState(false)
  const [isEmpty, setEmpty] = useState(false)

  useEffect(() => {
    if (!host.current || !spoken.current) return
    const opened = createTerminal(host.current, {
      locale: i18n.locale,
      onFollowing: setFollowing,
      onTop: () => void feed.current?.readOlder().catch(() => {}),
    })
    terminal.current = opened
    const heard = createSpokenLines(spoken.current)
    const sink: ConsoleSink = {
      append(added) {
        opened.append(added)
        heard.add(added)
      },
      replace(all, firstShown) {
        // Older ones that were asked for come before those that are there.
        if (firstShown === undefined) heard.replace(all)
        return opened.replace(all, firstShown)
      },
    }
    const lines = openConsoleFeed(server.id, sink, { onState: setState, onOlder: setOlder, onEmpty: setEmpty })
    feed.current = lines
    return () => {
      lines.close()
      heard.dispose()
      opened.dispose()
    }
  }, [server.id, i18n.locale])

  /** Tried again by who scrolls up again. */
  const readOlder = () => feed.current?.readOlder().catch(() => {})

  const showLine = async (line: number) => {
    const index = await feed.current?.reach(line).catch(() => null)
    if (index == null || !feed.current) return showToast(t`That line is no longer there, or too far back.`)
    terminal.current?.show(feed.current.lines.length - 1 - index)
  }
  const show = useRef(showLine)
  show.current = showLine
  useEffect(() => {
    if (wanted) void show.current(wanted.line)
  }, [wanted])

  const find = async (text: string, direction: 'next' | 'previous'): Promise<boolean> => {
    const found = terminal.current?.find(text, direction) ?? 'missing'
    if (found === 'found' || direction === 'next') return found !== 'missing'
    // Everything here is looked through: what is older is asked for before it begins again at the newest line.
    const older = await feed.current?.findOlder(text).catch(() => null)
    if (older != null) await showLine(older)
    return older != null || found === 'wrapped'
  }

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
          <Button variant="subtle" color="gray" size="compact-sm" onClick={() => void readOlder()}>
            <Trans>Older lines</Trans>
          </Button>
        )}
        <FindField onFind={find} />
        <ConsoleTools feed={feed} terminal={terminal} />
      </div>
      {typeof state === 'object' && <Problem error={state.error} />}
      <div className={css.screen}>
        <div ref={host} className={css.host} />
        <div ref={spoken} className={css.spoken} role="log" aria-label={t`Newest lines of the console`} />
        {isEmpty && (
          <p className={css.empty}>
            <Trans>Nothing is written yet. Start the server, and what it says appears here.</Trans>
          </p>
        )}
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
