import { Trans, useLingui } from '@lingui/react/macro'
import { NativeSelect, TextInput } from '@mantine/core'
import type { Server, ServerChange, StoredTemplate } from '../../../../../src/sdk/index.ts'
import { useSession } from '../../../api/access/session.ts'
import { useDraft } from './draft.ts'
import { SectionForm } from './section.tsx'

interface Props {
  server: Server
  template: StoredTemplate | null
  mayChange: boolean
}

const OTHER = 'other'

/** As a process of this machine, or in a container: as the template allows. */
export function RuntimeSection({ server, template, mayChange }: Props) {
  const { t } = useLingui()
  const { data: session } = useSession()
  const kinds = template?.runtimes ?? ['process', 'container']
  const images = template?.images ?? []
  const { values, isChanged, set, reset } = useDraft({
    kind: server.runtime?.kind ?? (kinds.includes('process') ? 'process' : 'container'),
    image: server.runtime?.image ?? '',
  })
  const isListed = values.image === '' || images.some(({ image }) => image === values.image)
  // Whoever creates servers may run any image; others those that the template lists.
  const mayPickAny = session?.servers === '*'
  const isStopped = ['stopped', 'crashed', 'sleeping'].includes(server.power.state)
  const change: ServerChange = {
    runtime:
      values.kind === 'process'
        ? { kind: 'process' }
        : { kind: 'container', image: values.image.trim() === '' ? null : values.image.trim() },
  }
  const first = images[0]
  return (
    <SectionForm
      title={t`Runtime`}
      text={
        isStopped ? (
          <Trans>Where the game runs. A container brings its own system, such as another Java.</Trans>
        ) : (
          <Trans>Stop the game to change it.</Trans>
        )
      }
      serverId={server.id}
      mayChange={mayChange && isStopped}
      change={isChanged ? change : null}
      onReset={reset}
    >
      {(faultAt) => (
        <>
          <NativeSelect
            label={t`The game runs as`}
            data={[
              { value: 'process', label: t`a process of this machine`, disabled: !kinds.includes('process') },
              { value: 'container', label: t`a container`, disabled: !kinds.includes('container') },
            ]}
            value={values.kind}
            error={faultAt('/runtime/kind')}
            onChange={(event) => set({ kind: event.currentTarget.value as 'process' | 'container' })}
          />
          {values.kind === 'container' && images.length > 0 && (
            <NativeSelect
              label={t`Image`}
              data={[
                { value: '', label: first ? t`${first.name} (default)` : t`default` },
                ...images.slice(1).map(({ name, image }) => ({ value: image, label: name })),
                ...(mayPickAny || !isListed ? [{ value: OTHER, label: t`another one` }] : []),
              ]}
              value={isListed ? (values.image === first?.image ? '' : values.image) : OTHER}
              onChange={({ currentTarget: { value } }) => set({ image: value === OTHER ? ' ' : value })}
            />
          )}
          {values.kind === 'container' && (images.length === 0 || !isListed) && (
            <TextInput
              label={t`Name of the image`}
              placeholder="docker.io/library/debian:13"
              spellCheck={false}
              value={values.image.trimStart()}
              error={faultAt('/runtime/image')}
              onChange={(event) => set({ image: event.currentTarget.value || ' ' })}
            />
          )}
        </>
      )}
    </SectionForm>
  )
}
