import { Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import { useCreateLink } from '../api/access/session.ts'
import { Dialog } from '../components/dialog.tsx'
import { Moment } from '../components/moment.tsx'
import { Problem } from '../components/problem.tsx'
import { SecretText } from '../components/secret-text.tsx'

/** For a phone, or another browser: nobody has to know a token. */
export function DeviceLink({ onClose }: { onClose: () => void }) {
  const { t } = useLingui()
  const link = useCreateLink()
  return (
    <Dialog opened onClose={onClose} title={t`Sign in on another device`}>
      <div className="stack">
        {link.data ? (
          <>
            <SecretText text={link.data.url} label={t`Copy the link`} />
            <p className="soft">
              <Trans>
                Open it on the other device. It is good once, ends <Moment at={link.data.expiresAt} />, and signs in as
                you.
              </Trans>
            </p>
          </>
        ) : (
          <>
            <p className="soft">
              <Trans>A link signs in there once, within 15 minutes. Give it to nobody else: it signs in as you.</Trans>
            </p>
            {link.error && <Problem error={link.error} />}
            <div className="row">
              <Button loading={link.isPending} onClick={() => link.mutate()} data-autofocus>
                <Trans>Make the link</Trans>
              </Button>
            </div>
          </>
        )}
      </div>
    </Dialog>
  )
}
