import type { Server } from '../../../../../../src/sdk/index.ts'
import { Retention } from './retention.tsx'
import { Schedules } from './schedules.tsx'

export default function Plans({ server }: { server: Server }) {
  return (
    <div className="stack">
      <Schedules server={server} />
      <Retention server={server} />
    </div>
  )
}
