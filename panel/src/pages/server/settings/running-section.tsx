import { Trans, useLingui } from '@lingui/react/macro'
import { Switch, TextInput } from '@mantine/core'
import type { Server, ServerChange, StoredTemplate } from '../../../../../src/sdk/index.ts'
import { numberOf, useDraft } from './draft.ts'
import { SectionForm } from './section.tsx'
import css from './settings-tab.module.css'

const DEFAULT_MINUTES = '30'

/** As the service decides it: somebody has to tell who plays, and there has to be a port to listen on for who comes. */
const canSleep = (template: StoredTemplate | null) =>
  template !== null &&
  (template.query !== undefined || (template.joins !== undefined && template.leaves !== undefined)) &&
  (template.ports ?? []).length > 0

interface Props {
  server: Server
  template: StoredTemplate | null
  mayChange: boolean
}

export function RunningSection({ server, template, mayChange }: Props) {
  const { t } = useLingui()
  const { values, changed, isChanged, set, reset } = useDraft({
    autoRestart: server.autoRestart,
    sleeps: server.sleep !== null,
    minutes: server.sleep === null ? DEFAULT_MINUTES : String(server.sleep.afterMinutes),
  })
  const isSleepChanged = changed.sleeps !== undefined || (values.sleeps && changed.minutes !== undefined)
  const change: ServerChange = {
    ...(changed.autoRestart === undefined ? {} : { autoRestart: changed.autoRestart }),
    ...(isSleepChanged ? { sleep: values.sleeps ? { afterMinutes: numberOf(values.minutes) ?? 0 } : null } : {}),
  }
  const mayPickSleep = canSleep(template) || server.sleep !== null
  return (
    <SectionForm
      title={t`Crashes and sleep`}
      text={<Trans>What happens by itself.</Trans>}
      serverId={server.id}
      mayChange={mayChange}
      change={isChanged && Object.keys(change).length > 0 ? change : null}
      onReset={reset}
    >
      {(faultAt) => (
        <>
          <Switch
            label={t`Start again after a crash`}
            description={t`Later each time, so that a game that cannot run does not keep the machine busy.`}
            checked={values.autoRestart}
            onChange={(event) => set({ autoRestart: event.currentTarget.checked })}
          />
          <Switch
            label={t`Sleep while nobody plays`}
            description={
              mayPickSleep
                ? t`The game stops, and starts when somebody joins. The first one to come waits until it is up.`
                : t`Not with this game: nothing tells who plays, or where players come in.`
            }
            disabled={!mayPickSleep}
            checked={values.sleeps}
            error={faultAt('/sleep')}
            onChange={(event) => set({ sleeps: event.currentTarget.checked })}
          />
          {values.sleeps && (
            <TextInput
              className={css.short}
              label={t`After how many minutes`}
              type="number"
              min={1}
              max={10080}
              required
              withAsterisk={false}
              value={values.minutes}
              error={faultAt('/sleep/afterMinutes')}
              onChange={(event) => set({ minutes: event.currentTarget.value })}
            />
          )}
        </>
      )}
    </SectionForm>
  )
}
