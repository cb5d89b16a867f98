import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Checkbox, Skeleton, TextInput } from '@mantine/core'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { DeletionPlan, Server } from '../../../../../src/sdk/index.ts'
import { useDeletion, useDeletionPlan } from '../../../api/server-settings.ts'
import { Dialog } from '../../../components/dialog.tsx'
import { DialogButtons } from '../../../components/dialog-buttons.tsx'
import { Moment } from '../../../components/moment.tsx'
import { Problem } from '../../../components/problem.tsx'
import { showFailure, showToast } from '../../../components/toasts.tsx'
import { formatBytes, formatCount } from '../../../i18n/format.ts'
import { Section, WhenStopped } from './section.tsx'
import css from './settings-tab.module.css'

export function DangerSection({ server }: { server: Server }) {
  const { t } = useLingui()
  const [isOpen, setOpen] = useState(false)
  return (
    <div className={css.danger}>
      <Section
        title={t`Delete the server`}
        text={<Trans>With its files, backups, schedules and names. It can be brought back for a while.</Trans>}
      >
        <WhenStopped server={server}>
          {(isStopped) => (
            <Button color="red" variant="light" disabled={!isStopped} onClick={() => setOpen(true)}>
              <Trans>Delete…</Trans>
            </Button>
          )}
        </WhenStopped>
      </Section>
      <Dialog opened={isOpen} onClose={() => setOpen(false)} title={t`Delete ${server.name}?`}>
        {isOpen && <DeleteForm server={server} onClose={() => setOpen(false)} />}
      </Dialog>
    </div>
  )
}

function DeleteForm({ server, onClose }: { server: Server; onClose: () => void }) {
  const { t } = useLingui()
  const [, navigate] = useLocation()
  const [typed, setTyped] = useState('')
  const [isPurging, setPurging] = useState(false)
  const { data: plan, error } = useDeletionPlan(server.id, true)
  const { remove, bringBack } = useDeletion(server.id)
  const { name } = server
  // The form is gone by then, so what follows hangs on the promises.
  const undo = () =>
    bringBack.mutateAsync().catch((why: unknown) => showFailure(t`${name} could not be brought back`, why))
  const submit = (event: React.FormEvent) => {
    event.preventDefault()
    const removed = remove.mutateAsync({ name, purge: isPurging })
    onClose()
    navigate('/')
    removed.then(
      () =>
        isPurging
          ? showToast(t`${name} is gone for good.`)
          : showToast(t`${name} is deleted.`, { label: t`Undo`, run: () => void undo() }),
      (why: unknown) => showFailure(t`${name} could not be deleted`, why),
    )
  }
  if (error) return <Problem error={error} />
  if (!plan) return <Skeleton height={120} radius="md" />
  if (plan.lockedBackups > 0) return <Locked server={server} />
  return (
    <form onSubmit={submit} className="stack">
      <Frees plan={plan} isPurging={isPurging} />
      <Checkbox
        label={t`For good, at once`}
        description={t`Nothing of it can be brought back.`}
        checked={isPurging}
        onChange={(event) => setPurging(event.currentTarget.checked)}
      />
      <TextInput
        data-autofocus
        label={
          <Trans>
            Type <strong>{name}</strong> to confirm
          </Trans>
        }
        value={typed}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      <DialogButtons onClose={onClose}>
        <Button type="submit" color="red" disabled={typed !== name}>
          {isPurging ? <Trans>Delete for good</Trans> : <Trans>Delete</Trans>}
        </Button>
      </DialogButtons>
    </form>
  )
}

function Frees({ plan: { frees, purgeAt }, isPurging }: { plan: DeletionPlan; isPurging: boolean }) {
  const { i18n } = useLingui()
  const bytes = (count: number) => formatBytes(count, i18n.locale)
  const backups = formatCount(frees.backups.count, i18n.locale)
  return (
    <div className="soft">
      {isPurging ? (
        <p>
          <Trans>This is gone for good, at once:</Trans>
        </p>
      ) : (
        <p>
          <Trans>
            Players no longer find it. Until it is gone for good, <Moment at={purgeAt} />, all of this can be brought
            back:
          </Trans>
        </p>
      )}
      <ul>
        <li>
          <Trans>files: {bytes(frees.files.sizeBytes + frees.trash.sizeBytes)}</Trans>
        </li>
        <li>
          <Trans>
            backups: {backups}, {bytes(frees.backups.storedBytes)}
          </Trans>
        </li>
        {frees.subdomains.length > 0 && (
          <li>
            <Trans>names: {frees.subdomains.join(', ')}</Trans>
          </li>
        )}
      </ul>
    </div>
  )
}

function Locked({ server }: { server: Server }) {
  return (
    <p className="soft">
      <Trans>
        It has locked backups, which somebody wanted to keep. Unlock them first, under{' '}
        <Link href={`/servers/${server.id}/backups`}>Backups</Link>.
      </Trans>
    </p>
  )
}
