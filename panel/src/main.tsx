import './theme/mantine.ts'
import './theme/base.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { askAhead } from './api/access/session.ts'
import { followOtherTabs } from './api/access/session-proof.ts'
import { createQueryClient } from './api/query-client.ts'
import { App } from './app/app.tsx'
import { ignoreMissedDrops } from './app/missed-drops.ts'
import { activatePreferred } from './i18n/i18n.ts'

followOtherTabs()
ignoreMissedDrops()
const queries = createQueryClient()
void askAhead(queries)
await activatePreferred()
const root = document.getElementById('root')
if (!root) throw new Error('The page has no #root.')
createRoot(root).render(
  <StrictMode>
    <App queries={queries} />
  </StrictMode>,
)
