import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Tooltip } from '@mantine/core'
import type { Scope } from '../../../../src/sdk/index.ts'
import { useServers } from '../../api/servers.ts'
import { RIGHT_NAMES } from './right-names.ts'
import { rightOf } from './rights.ts'

const NAMED_AT_MOST = 3

/** "Manage files · Castle, Creative" */
export function AccessWords({ scopes, servers }: { scopes: readonly Scope[]; servers: '*' | readonly string[] }) {
  return (
    <>
      <RightWords scopes={scopes} /> · <ServerWords servers={servers} />
    </>
  )
}

function RightWords({ scopes }: { scopes: readonly Scope[] }) {
  const { t } = useLingui()
  const right = rightOf(scopes)
  if (right === 'owner') return <Trans>Everything, also this instance</Trans>
  if (right !== null) return <>{t(RIGHT_NAMES[right])}</>
  return (
    <Tooltip label={scopes.join(', ')} multiline>
      <span>
        <Plural value={scopes.length} one="# scope" other="# scopes" />
      </span>
    </Tooltip>
  )
}

function ServerWords({ servers }: { servers: '*' | readonly string[] }) {
  const { data = [] } = useServers()
  const { t } = useLingui()
  if (servers === '*') return <Trans>all servers</Trans>
  if (servers.length > NAMED_AT_MOST) return <Plural value={servers.length} one="# server" other="# servers" />
  const names = servers.map((id) => data.find((server) => server.id === id)?.name ?? t`a deleted server`)
  return <>{names.join(', ')}</>
}
