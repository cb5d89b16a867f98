import type { MessageDescriptor } from '@lingui/core'
import { msg } from '@lingui/core/macro'
import { Trans, useLingui } from '@lingui/react/macro'
import { TextInput } from '@mantine/core'
import type { Server } from '../../../../../src/sdk/index.ts'
import { numberOf, useDraft } from './draft.ts'
import { SectionForm } from './section.tsx'
import css from './settings-tab.module.css'

const MIB = 1024 ** 2
const GIB = 1024 ** 3

interface Limit {
  title: MessageDescriptor
  /** What one of what is typed is in what is stored. */
  unit: number
  suffix: string
  min: number
  max?: number
}

const LIMITS: Record<keyof Server['limits'], Limit> = {
  memoryBytes: { title: msg`Memory`, unit: MIB, suffix: 'MiB', min: 16 },
  cpuPercent: { title: msg`CPU, of one core`, unit: 1, suffix: '%', min: 1, max: 100_000 },
  diskBytes: { title: msg`Disk`, unit: GIB, suffix: 'GiB', min: 0 },
  entries: { title: msg`Files and folders`, unit: 1, suffix: '', min: 0 },
  backups: { title: msg`Backups`, unit: 1, suffix: '', min: 0, max: 1_000_000 },
  subdomains: { title: msg`Names`, unit: 1, suffix: '', min: 0, max: 1_000_000 },
  processes: { title: msg`Processes and threads`, unit: 1, suffix: '', min: 8, max: 1_000_000 },
}
const NAMES = Object.keys(LIMITS) as (keyof typeof LIMITS)[]

/** Rounded for people: what is not touched is not sent, so nothing is lost by it. */
const textOf = (value: number | null, unit: number) =>
  value === null ? '' : String(Math.round((value / unit) * 1000) / 1000)

export function LimitsSection({ server, mayChange }: { server: Server; mayChange: boolean }) {
  const { t } = useLingui()
  const stored = Object.fromEntries(NAMES.map((name) => [name, textOf(server.limits[name], LIMITS[name].unit)]))
  const { values, changed, isChanged, set, reset } = useDraft<Record<string, string>>(stored)
  const limits = Object.fromEntries(
    NAMES.filter((name) => changed[name] !== undefined).map((name) => {
      const typed = numberOf(changed[name] ?? '')
      return [name, typed === null ? null : Math.round(typed * LIMITS[name].unit)]
    }),
  )
  return (
    <SectionForm
      title={t`Limits`}
      text={
        mayChange ? (
          <Trans>Empty is no limit. A game that runs takes memory, CPU and processes with its next start.</Trans>
        ) : (
          <Trans>Whoever runs this service sets them. Empty is no limit.</Trans>
        )
      }
      serverId={server.id}
      mayChange={mayChange}
      change={isChanged ? { limits } : null}
      onReset={reset}
    >
      {(faultAt) => (
        <div className={css.limits}>
          {NAMES.map((name) => {
            const { title, unit, suffix, min, max } = LIMITS[name]
            return (
              <TextInput
                key={name}
                label={suffix === '' ? t(title) : `${t(title)} (${suffix})`}
                type="number"
                min={min}
                max={max}
                step={unit === GIB ? 'any' : 1}
                placeholder={t`no limit`}
                value={values[name] ?? ''}
                error={faultAt(`/limits/${name}`)}
                onChange={(event) => set({ [name]: event.currentTarget.value })}
              />
            )
          })}
        </div>
      )}
    </SectionForm>
  )
}
