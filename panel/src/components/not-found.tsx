import { Trans, useLingui } from '@lingui/react/macro'
import { Link } from 'wouter'
import { Empty } from './empty.tsx'

export function NotFound() {
  const { t } = useLingui()
  return (
    <Empty icon="search" title={t`There is no such page`}>
      <Link href="/">
        <Trans>To your servers</Trans>
      </Link>
    </Empty>
  )
}
