import type { MessageDescriptor } from '@lingui/core'
import { msg } from '@lingui/core/macro'
import { Trans, useLingui } from '@lingui/react/macro'
import { ActionIcon, Tooltip } from '@mantine/core'
import { useState } from 'react'
import type { Server, Subdomain } from '../../../../../src/sdk/index.ts'
import { useSubdomainActions } from '../../../api/subdomains.ts'
import { Confirm } from '../../../components/confirm.tsx'
import { CopyButton } from '../../../components/copy-button.tsx'
import { Icon } from '../../../components/icon.tsx'
import { Moment } from '../../../components/moment.tsx'
import { showFailure, showToast } from '../../../components/toasts.tsx'
import css from './names-tab.module.css'

const REASONS: Record<NonNullable<Subdomain['reason']>['code'], MessageDescriptor> = {
  unreachable: msg`The DNS provider does not answer. It is tried again by itself.`,
  refused: msg`The DNS provider refuses the credentials of this service. Ask whoever runs it to look at them.`,
  rate_limited: msg`The DNS provider asks us to wait. It is tried again by itself.`,
  zone_missing: msg`The DNS provider does not have the zone. Ask whoever runs this service to create it there.`,
  zone_unconfigured: msg`The zone is no longer set up for this service. Delete the name, or ask for the zone to be set up again.`,
  conflict: msg`The name has records there that somebody else made, and we do not touch those. Delete it and choose another.`,
  invalid: msg`The DNS provider does not take such records. Delete it and choose another name.`,
  server_error: msg`The DNS provider failed. It is tried again by itself.`,
  unconfirmed: msg`The DNS provider said yes, but the zone does not show it yet. It is tried again by itself.`,
}

interface Props {
  server: Server
  subdomain: Subdomain
  mayChange: boolean
}

export function NameRow({ server, subdomain, mayChange }: Props) {
  const { t } = useLingui()
  const [isDeleting, setDeleting] = useState(false)
  const { remove } = useSubdomainActions(server.id)
  const { connect, hostname, reason, records, status, createdAt } = subdomain
  const removeIt = () =>
    remove.mutate(subdomain.id, {
      onSuccess: () => showToast(t`${hostname} is deleted.`),
      onError: (error) => showFailure(t`${hostname} could not be deleted`, error),
    })
  return (
    <li className={css.item}>
      <div className={css.head}>
        <span className={css.connect}>
          <strong className="mono">{connect}</strong>
          <CopyButton text={connect} label={t`Copy ${connect}`} />
        </span>
        <Progress subdomain={subdomain} />
        {mayChange && (
          <Tooltip label={t`Delete`}>
            <ActionIcon
              variant="subtle"
              color="gray"
              size="lg"
              aria-label={t`Delete ${hostname}`}
              disabled={status === 'deleting'}
              loading={remove.isPending}
              onClick={() => setDeleting(true)}
            >
              <Icon name="trash" size={16} />
            </ActionIcon>
          </Tooltip>
        )}
      </div>
      {reason && (
        <p className={css.reason} data-failed={status === 'failed' || undefined}>
          {REASONS[reason.code] ? t(REASONS[reason.code]) : reason.detail}
        </p>
      )}
      <details className="small soft">
        <summary>
          <Trans>Records</Trans> · <Moment at={createdAt} />
        </summary>
        <ul className={`mono ${css.records}`}>
          {records.map(({ name, type, ttl, values }) => (
            <li key={`${name} ${type}`}>
              {name} {ttl} {type} {values.join(', ')}
            </li>
          ))}
        </ul>
      </details>
      <Confirm
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={removeIt}
        title={t`Delete ${hostname}?`}
        text={t`Players who type this name no longer find the server. Nobody else can take the name for a while.`}
        action={t`Delete`}
      />
    </li>
  )
}

const STEPS = [msg`requested`, msg`published`, msg`answered`] as const

/** From asked for to answered; what is on its way out, or stuck, says so instead. */
function Progress({ subdomain: { status, propagatedAt } }: { subdomain: Subdomain }) {
  const { t } = useLingui()
  if (status === 'deleting' || status === 'failed' || status === 'withdrawn') {
    return (
      <span className={css.state} data-status={status}>
        {status === 'deleting' && <Trans>leaves DNS…</Trans>}
        {status === 'failed' && <Trans>failed</Trans>}
        {status === 'withdrawn' && <Trans>withdrawn while the server is deleted</Trans>}
      </span>
    )
  }
  const done = propagatedAt !== null ? 3 : status === 'active' ? 2 : 1
  return (
    <ol className={css.steps} aria-label={t`State`}>
      {STEPS.map((name, index) => (
        <li
          key={name.id}
          data-state={index < done ? 'done' : 'ahead'}
          aria-current={index === done - 1 ? 'step' : undefined}
        >
          <span aria-hidden="true" className={css.mark}>
            {index < done && <Icon name="check" size={11} />}
          </span>
          {t(name)}
        </li>
      ))}
    </ol>
  )
}
