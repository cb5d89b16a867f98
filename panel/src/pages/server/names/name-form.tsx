import { msg } from '@lingui/core/macro'
import { Trans, useLingui } from '@lingui/react/macro'
import { Button, NativeSelect, TextInput } from '@mantine/core'
import { useState } from 'react'
import { isApiError, type Server, type Subdomain, type ZoneInfo } from '../../../../../src/sdk/index.ts'
import { useTemplate } from '../../../api/servers.ts'
import { useSubdomainActions } from '../../../api/subdomains.ts'
import { Icon } from '../../../components/icon.tsx'
import { showFailure } from '../../../components/toasts.tsx'
import { type NameFault, nameFault, normaliseName } from './name-check.ts'
import css from './names-tab.module.css'

const FAULTS = {
  form: msg`Letters, digits and hyphens, with no hyphen at either end.`,
  encoded: msg`An encoded international name cannot be taken.`,
  long: msg`It is too long for this zone.`,
  own: msg`This server has that name already.`,
} as const satisfies Record<NameFault, unknown>

interface Props {
  server: Server
  zones: readonly ZoneInfo[]
  subdomains: readonly Subdomain[]
}

export function NameForm({ server, zones, subdomains }: Props) {
  const { t } = useLingui()
  const [name, setName] = useState('')
  const [chosen, setZone] = useState(zones[0]?.zone ?? '')
  /** The last one that the service refused, and why. */
  const [refused, setRefused] = useState<{ hostname: string; why: string } | null>(null)
  const { create } = useSubdomainActions(server.id)
  const { data: template } = useTemplate(server.game)
  const zone = zones.find((each) => each.zone === chosen) ?? zones[0]
  if (!zone) return null
  const hostname = `${name}.${zone.zone}`
  const port = server.port ?? template?.defaultPort
  // Games that look the port up in DNS need none.
  const connect = port === undefined || template?.srv !== undefined ? hostname : `${hostname}:${port}`
  const fault = nameFault(
    name,
    zone.zone,
    subdomains.map((each) => each.hostname),
  )
  const why = refused?.hostname === hostname ? refused.why : fault && t(FAULTS[fault])
  const isFull = zone.limit !== null && zone.used >= zone.limit
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    if (fault) return
    create.mutate(
      { name, zone: zone.zone },
      {
        onSuccess: () => setName(''),
        onError: (error) => {
          if (isApiError(error, 'subdomain_taken'))
            setRefused({ hostname, why: t`Somebody has this name. Try another.` })
          else if (isApiError(error, 'invalid_request')) setRefused({ hostname, why: t`This name is reserved.` })
          else showFailure(t`The name was not taken`, error)
        },
      },
    )
  }
  return (
    <form onSubmit={submit} className={`card ${css.form}`}>
      <div className={css.fields}>
        <TextInput
          className={css.name}
          label={t`Name`}
          placeholder={t`castle`}
          value={name}
          onChange={(event) => setName(normaliseName(event.currentTarget.value))}
          error={name !== '' && why !== null}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          maxLength={63}
          aria-describedby="name-check"
          disabled={isFull}
        />
        <NativeSelect
          className={css.zone}
          label={t`Zone`}
          data={zones.map((each) => ({ value: each.zone, label: `.${each.zone}` }))}
          value={zone.zone}
          onChange={(event) => setZone(event.currentTarget.value)}
        />
        <Button type="submit" loading={create.isPending} disabled={isFull || why !== null}>
          <Trans>Add the name</Trans>
        </Button>
      </div>
      <p
        id="name-check"
        className={`small ${css.check}`}
        role="status"
        data-look={name === '' ? undefined : lookOf(why)}
      >
        {isFull ? (
          <Trans>This server has as many names as it may have. Delete one to add another.</Trans>
        ) : name === '' ? (
          <Trans>A name is easier to remember than an address, and stays when the address changes.</Trans>
        ) : why ? (
          why
        ) : (
          <>
            <Icon name="check" size={15} /> <Trans>Players will type</Trans> <strong className="mono">{connect}</strong>
          </>
        )}
      </p>
    </form>
  )
}

const lookOf = (why: string | null) => (why === null ? 'good' : 'bad')
