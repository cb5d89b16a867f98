import { useLingui } from '@lingui/react/macro'
import { ActionIcon, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type KeyboardEvent, useRef, useState } from 'react'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useMay } from '../../../api/access/session.ts'
import { client } from '../../../api/client.ts'
import { Icon } from '../../../components/icon.tsx'
import { showFailure } from '../../../components/toasts.tsx'
import { CommandHistory } from './command-history.tsx'
import css from './console.module.css'

interface Props {
  server: Server
  /** Oldest first, whoever sent them. */
  readHistory: () => string[]
}

export function CommandInput({ server, readHistory }: Props) {
  const { t } = useLingui()
  const may = useMay()
  const field = useRef<HTMLInputElement>(null)
  const [command, setCommand] = useState('')
  /** How many commands back; 0 is the one being typed. */
  const back = useRef(0)
  const send = useMutation({ mutationFn: (text: string) => client.console.send(server.id, text) })
  const isOn =
    server.power.state === 'running' || server.power.state === 'starting' || server.power.state === 'stopping'

  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    if (command.trim() === '') return
    back.current = 0
    // At once: whatever is typed while it is on its way is the next one.
    setCommand('')
    send.mutate(command, {
      onError: (error) => {
        setCommand((typed) => (typed === '' ? command : typed))
        showFailure(t`The command was not sent`, error)
      },
    })
  }
  const recall = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return
    event.preventDefault()
    const history = readHistory()
    back.current = Math.max(0, Math.min(history.length, back.current + (event.key === 'ArrowUp' ? 1 : -1)))
    setCommand(back.current === 0 ? '' : (history.at(-back.current) ?? ''))
  }
  return (
    <form className={css.command} onSubmit={submit}>
      <TextInput
        ref={field}
        className="grow"
        variant="unstyled"
        aria-label={t`Command`}
        placeholder={isOn ? t`Type a command; ↑ brings back earlier ones` : t`Start the server to send commands`}
        leftSection={<span aria-hidden="true">›</span>}
        value={command}
        onChange={(event) => setCommand(event.currentTarget.value)}
        onKeyDown={recall}
        disabled={!isOn}
        autoComplete="off"
        spellCheck={false}
        classNames={{ input: css.commandInput }}
      />
      {may('activity:read') && (
        <CommandHistory
          serverId={server.id}
          onPick={(picked) => {
            setCommand(picked)
            // The menu gives the focus back to its button first.
            setTimeout(() => field.current?.focus())
          }}
        />
      )}
      <ActionIcon
        type="submit"
        variant="subtle"
        size="lg"
        aria-label={t`Send`}
        loading={send.isPending}
        disabled={!isOn || command.trim() === ''}
      >
        <Icon name="send" size={16} />
      </ActionIcon>
    </form>
  )
}
