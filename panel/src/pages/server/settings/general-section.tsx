import { Trans, useLingui } from '@lingui/react/macro'
import { Textarea, TextInput } from '@mantine/core'
import type { Server, ServerChange } from '../../../../../src/sdk/index.ts'
import { numberOf, useDraft } from './draft.ts'
import { labelsText, readLabels } from './labels.ts'
import { SectionForm } from './section.tsx'

export function GeneralSection({ server, mayChange }: { server: Server; mayChange: boolean }) {
  const { t } = useLingui()
  const { values, changed, isChanged, set, reset } = useDraft({
    name: server.name,
    description: server.description ?? '',
    port: server.port === null ? '' : String(server.port),
    labels: labelsText(server.labels),
  })
  const change: ServerChange = {
    ...(changed.name === undefined ? {} : { name: changed.name.trim() }),
    ...(changed.description === undefined ? {} : { description: changed.description.trim() || null }),
    ...(changed.port === undefined ? {} : { port: numberOf(changed.port) }),
    ...(changed.labels === undefined ? {} : { labels: readLabels(changed.labels) }),
  }
  return (
    <SectionForm
      title={t`General`}
      text={<Trans>How the server is called, and the port that players come to.</Trans>}
      serverId={server.id}
      mayChange={mayChange}
      change={isChanged ? change : null}
      onReset={reset}
    >
      {(faultAt) => (
        <>
          <TextInput
            label={t`Name`}
            required
            withAsterisk={false}
            maxLength={191}
            value={values.name}
            error={faultAt('/name')}
            onChange={(event) => set({ name: event.currentTarget.value })}
          />
          <Textarea
            label={t`Description`}
            rows={2}
            maxLength={2000}
            value={values.description}
            error={faultAt('/description')}
            onChange={(event) => set({ description: event.currentTarget.value })}
          />
          <TextInput
            label={t`Port`}
            description={t`A game that runs takes it with its next start.`}
            type="number"
            min={1}
            max={65535}
            value={values.port}
            error={faultAt('/port')}
            onChange={(event) => set({ port: event.currentTarget.value })}
          />
          <Textarea
            label={t`Labels`}
            description={t`One a line, such as owner=anna. The list of servers finds them.`}
            rows={2}
            spellCheck={false}
            value={values.labels}
            error={faultAt('/labels')}
            onChange={(event) => set({ labels: event.currentTarget.value })}
          />
        </>
      )}
    </SectionForm>
  )
}
