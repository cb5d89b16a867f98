import { useLingui } from '@lingui/react/macro'
import { ActionIcon, Tooltip } from '@mantine/core'
import { useState } from 'react'
import { Icon } from './icon.tsx'

const SHOWN_MS = 1500

export function CopyButton({ text, label }: { text: string; label: string }) {
  const { t } = useLingui()
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await copyText(text)
    setCopied(true)
    setTimeout(() => setCopied(false), SHOWN_MS)
  }
  return (
    <Tooltip label={isCopied ? t`Copied` : label}>
      <ActionIcon variant="subtle" color="gray" size="sm" aria-label={label} onClick={() => void copy()}>
        <Icon name={isCopied ? 'check' : 'copy'} size={15} />
      </ActionIcon>
    </Tooltip>
  )
}

/** Browsers keep the clipboard from pages that were not loaded over HTTPS, which a panel at home often is not. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'copy-source'
  document.body.append(field)
  field.select()
  document.execCommand('copy')
  field.remove()
}
