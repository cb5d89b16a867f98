import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Checkbox, Progress } from '@mantine/core'
import { useState } from 'react'
import { Link } from 'wouter'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useInstall } from '../../../api/server-settings.ts'
import { Confirm } from '../../../components/confirm.tsx'
import { showFailure, showToast } from '../../../components/toasts.tsx'
import { Section, WhenStopped } from './section.tsx'

export function InstallSection({ server }: { server: Server }) {
  const { t } = useLingui()
  const [isWiping, setWiping] = useState(false)
  const [isAsking, setAsking] = useState(false)
  const { install, job } = useInstall(server.id)
  const run = () =>
    install.mutate(isWiping, {
      onSuccess: () => showToast(t`${server.name} is installed.`),
      onError: (error) => showFailure(t`It could not be installed`, error),
    })
  const { filesDone = 0, filesTotal = null } = job?.progress ?? {}
  return (
    <Section
      title={t`Install again`}
      text={<Trans>Goes through the steps of the template, such as to update the game or to repair it.</Trans>}
    >
      <Checkbox
        label={t`Move everything that is there to the trash first`}
        description={t`Worlds and settings too. Without it, files stay unless a step writes over them.`}
        checked={isWiping}
        onChange={(event) => setWiping(event.currentTarget.checked)}
      />
      {job && (
        <div role="status">
          <Progress
            value={filesTotal ? (100 * filesDone) / filesTotal : 100}
            animated
            aria-label={t`Progress of the installation`}
          />
          <p className="small soft">
            {filesTotal !== null && (
              <Trans>
                Step {Math.min(filesDone + 1, filesTotal)} of {filesTotal}.
              </Trans>
            )}{' '}
            <Link href={`/servers/${server.id}`}>
              <Trans>The console has what it says.</Trans>
            </Link>
          </p>
        </div>
      )}
      <WhenStopped server={server}>
        {(isStopped) => (
          <Button variant="default" disabled={!isStopped} loading={install.isPending} onClick={() => setAsking(true)}>
            <Trans>Install again</Trans>
          </Button>
        )}
      </WhenStopped>
      <Confirm
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        onConfirm={run}
        title={t`Install ${server.name} again?`}
        text={
          isWiping
            ? t`Everything that is there goes to the trash, then the game is installed as if it were new.`
            : t`Files of the game are written over where the template says so. Worlds stay unless it says otherwise: make a backup if you are not sure.`
        }
        action={t`Install`}
        {...(isWiping ? {} : { color: 'moss' })}
      />
    </Section>
  )
}
