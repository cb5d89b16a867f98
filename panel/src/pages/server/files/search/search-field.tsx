import { useLingui } from '@lingui/react/macro'
import { TextInput } from '@mantine/core'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { Icon } from '../../../../components/icon.tsx'
import { hrefOf } from '../paths.ts'

interface Props {
  serverId: string
  directory: string
  initial?: string
}

export function SearchField({ serverId, directory, initial = '' }: Props) {
  const { t } = useLingui()
  const [, navigate] = useLocation()
  const [text, setText] = useState(initial)
  return (
    <search>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const query = text.trim()
          navigate(hrefOf(serverId, directory) + (query === '' ? '' : `?search=${encodeURIComponent(query)}`))
        }}
      >
        <TextInput
          type="search"
          aria-label={t`Search in this folder`}
          placeholder={t`Search`}
          maxLength={191}
          leftSection={<Icon name="search" size={16} />}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      </form>
    </search>
  )
}
