import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useState } from 'react'
import { useTokens } from '../../../api/access/people.ts'
import { Icon } from '../../../components/icon.tsx'
import { Problem } from '../../../components/problem.tsx'
import css from '../../people/people-page.module.css'
import { PersonRow } from '../../people/person-row.tsx'
import { TokenDialog } from './token-dialog.tsx'

/** For programs. People are invited: they need no value to keep. */
export function TokensTab() {
  const { t } = useLingui()
  const { data: tokens, error, refetch } = useTokens()
  const [isMaking, setMaking] = useState(false)
  return (
    <div className="stack">
      <div className="row spread">
        <p className="soft">
          <Trans>Tokens are for programs: scripts, CI, the command line. Invite people instead.</Trans>
        </p>
        <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setMaking(true)}>
          <Trans>New token</Trans>
        </Button>
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!tokens && !error && <Skeleton height={140} radius="md" />}
      {tokens && (
        <ul className={`card ${css.list}`} aria-label={t`Tokens`}>
          {tokens.map((token) => (
            <PersonRow key={token.id} token={token} />
          ))}
        </ul>
      )}
      <TokenDialog isOpen={isMaking} onClose={() => setMaking(false)} />
    </div>
  )
}
