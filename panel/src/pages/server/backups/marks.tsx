import { Trans, useLingui } from '@lingui/react/macro'
import { Tooltip } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Backup } from '../../../../../src/sdk/index.ts'
import { Icon, type IconName } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import css from './marks.module.css'

/** How good a backup is, at a glance. */
export function Marks({ backup }: { backup: Backup }) {
  if (backup.error) return <Fault backup={backup} />
  return (
    <>
      <Consistency backup={backup} />
      {backup.verifiedAt && (
        <Mark tone="good" icon="shield">
          <Trans>
            Verified <Moment at={backup.verifiedAt} />
          </Trans>
        </Mark>
      )}
      <Rehearsed backup={backup} />
      <Offsite backup={backup} />
    </>
  )
}

function Fault({ backup: { status, error } }: { backup: Backup }) {
  const { t } = useLingui()
  const isDamaged = status === 'completed'
  return (
    <Mark
      tone="bad"
      icon="warning"
      hint={
        isDamaged ? t`Its intact parts can still be restored. The next backup that has the content repairs it.` : ''
      }
    >
      {isDamaged ? <Trans>Damaged</Trans> : <Trans>Failed: {error?.detail}</Trans>}
    </Mark>
  )
}

function Consistency({ backup: { consistency, heldMs } }: { backup: Backup }) {
  const { t, i18n } = useLingui()
  if (consistency === null) return null
  if (consistency === 'offline') {
    return <Mark tone="good" icon="check" hint={t`Nothing changed while it was read`}>{t`Consistent`}</Mark>
  }
  if (consistency === 'quiesced') {
    const seconds = new Intl.NumberFormat(i18n.locale, { maximumFractionDigits: 1 }).format((heldMs ?? 0) / 1000)
    return (
      <Mark tone="good" icon="check" hint={t`The game held its world still for ${seconds} s meanwhile`}>
        {t`Held still`}
      </Mark>
    )
  }
  return (
    <Mark
      tone="warn"
      icon="warning"
      hint={t`The game ran, or files changed while they were read. Look inside to see which.`}
    >
      {t`Live`}
    </Mark>
  )
}

function Rehearsed({ backup: { rehearsal, rehearsedAt } }: { backup: Backup }) {
  const { t } = useLingui()
  if (rehearsal?.outcome === 'failed') {
    return <Mark tone="bad" icon="warning" hint={rehearsal.reason ?? ''}>{t`The game did not come up from it`}</Mark>
  }
  if (rehearsedAt === null) return null
  return (
    <Mark tone="good" icon="play" hint={t`The game came up from it`}>
      <Trans>
        Rehearsed <Moment at={rehearsedAt} />
      </Trans>
    </Mark>
  )
}

function Offsite({ backup: { offsite } }: { backup: Backup }) {
  const { t } = useLingui()
  if (!offsite) return null
  if (offsite.state === 'stored') {
    return <Mark tone="good" icon="upload" hint={t`It is in the off-site store too`}>{t`Off-site`}</Mark>
  }
  const hint = offsite.error?.detail ?? t`It is still to be sent to the off-site store`
  return <Mark tone="warn" icon="warning" hint={hint}>{t`Only here so far`}</Mark>
}

interface MarkProps {
  tone: 'good' | 'warn' | 'bad'
  icon: IconName
  hint?: string
  children: ReactNode
}

function Mark({ tone, icon, hint = '', children }: MarkProps) {
  return (
    <Tooltip label={hint} disabled={hint === ''} multiline maw={320}>
      <span className={css.mark} data-tone={tone}>
        <Icon name={icon} size={14} />
        <span>{children}</span>
      </span>
    </Tooltip>
  )
}
