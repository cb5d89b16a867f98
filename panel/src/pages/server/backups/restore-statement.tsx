import { Plural, Trans } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import type { Backup, Server } from '../../../../../src/sdk/index.ts'
import { type RestoreEffect, useRestoreEffect } from '../../../api/backup-contents.ts'
import { Moment } from '../../../components/moment.tsx'
import css from './restore-statement.module.css'

interface Props {
  server: Server
  /** Where it is restored into. */
  target: Server
  backup: Backup
  paths: string[] | null
  mode: 'replace' | 'merge'
  hasSafety: boolean
  isStopped: boolean
}

/** What will happen, in the order in which it does. */
export function RestoreStatement({ server, target, backup, paths, mode, hasSafety, isStopped }: Props) {
  const isOther = target.id !== server.id
  return (
    <section className={css.statement} aria-live="polite">
      <h3>
        <Trans>This will happen</Trans>
      </h3>
      <ol>
        {isStopped && (
          <li>
            <Trans>The game is stopped. Whoever plays is disconnected.</Trans>
          </li>
        )}
        {hasSafety && (
          <li>
            <Trans>What is there now is backed up.</Trans>
          </li>
        )}
        {isOther ? (
          <li>
            <Trans>
              Files of <strong>{target.name}</strong> become those of the backup. {server.name} is not touched.
            </Trans>
          </li>
        ) : (
          <OwnEffect server={server} backup={backup} paths={paths} mode={mode} />
        )}
        {isStopped && (
          <li>
            <Trans>The game is started again.</Trans>
          </li>
        )}
      </ol>
      {!hasSafety && (
        <p className={css.warning}>
          <Trans>Without the backup there is no way back but the trash.</Trans>
        </p>
      )}
    </section>
  )
}

function OwnEffect({ server, backup, paths, mode }: Pick<Props, 'server' | 'backup' | 'paths' | 'mode'>) {
  const { data, isPending } = useRestoreEffect(server.id, backup.id, paths)
  if (isPending)
    return (
      <li>
        <Skeleton component="span" display="inline-block" height={14} width="70%" />
      </li>
    )
  return data ? <Effect effect={data} mode={mode} createdAt={backup.createdAt} /> : null
}

function Effect({ effect, mode, createdAt }: { effect: RestoreEffect; mode: Props['mode']; createdAt: string }) {
  const { changing, returning, newer, isPartial } = effect
  const goes = mode === 'replace' ? newer : 0
  if (changing + returning + goes === 0) {
    return (
      <li>
        <Trans>Nothing changes: the files are as in the backup.</Trans>
      </li>
    )
  }
  return (
    <>
      {changing > 0 && (
        <li>
          <Plural value={changing} one="# file becomes what it was" other="# files become what they were" />{' '}
          <Moment at={createdAt} />
        </li>
      )}
      {returning > 0 && (
        <li>
          <Plural value={returning} one="# file that is gone comes back" other="# files that are gone come back" />
        </li>
      )}
      {goes > 0 && (
        <li>
          <Plural
            value={goes}
            one="# file that was made since goes to the trash"
            other="# files that were made since go to the trash"
          />
        </li>
      )}
      {isPartial && (
        <li>
          <Trans>There are more than were counted here.</Trans>
        </li>
      )}
    </>
  )
}
