import { Trans } from '@lingui/react/macro'
import { Skeleton } from '@mantine/core'
import type { Server } from '../../../../../src/sdk/index.ts'
import { useMay, useSession } from '../../../api/access/session.ts'
import { useTemplate } from '../../../api/servers.ts'
import { DangerSection } from './danger-section.tsx'
import { GameSection, VariablesSection } from './game-section.tsx'
import { GeneralSection } from './general-section.tsx'
import { InstallSection } from './install-section.tsx'
import { LimitsSection } from './limits-section.tsx'
import { RunningSection } from './running-section.tsx'
import { RuntimeSection } from './runtime-section.tsx'

export default function SettingsTab({ server }: { server: Server }) {
  const may = useMay()
  const { data: session } = useSession()
  const { data, error } = useTemplate(server.game)
  const mayChange = may('servers:write') && server.status === 'ready'
  // A game that is only known by its name has no template: nothing to set, and nothing to install.
  const template = data ?? null
  if (server.game !== null && !data && !error) return <Skeleton height={320} radius="md" />
  const game = { server, template, mayChange }
  return (
    <div className="stack">
      {!mayChange && (
        <p className="soft">
          <Trans>You may look at these settings, not change them.</Trans>
        </p>
      )}
      <GeneralSection server={server} mayChange={mayChange} />
      <VariablesSection key={server.game} {...game} />
      <RunningSection {...game} />
      <LimitsSection server={server} mayChange={mayChange && may('servers:admin') && session?.servers === '*'} />
      <RuntimeSection key={`runtime ${server.game}`} {...game} />
      <GameSection {...game} />
      {mayChange && (template?.install ?? []).length > 0 && <InstallSection server={server} />}
      {mayChange && <DangerSection server={server} />}
    </div>
  )
}
