// The script of a process without rights that gives `locked`, together with each of the named files, the mode that owners
// keep at least, and prints the modes or the code of the refusal.
import { isFailure } from '../../contract/errors.ts'
import { layout } from '../layout.ts'
import { createAgentFiles } from './index.ts'

const [dataDir = '', serverId = '', ...names] = process.argv.slice(2)
const agent = createAgentFiles({ layout: layout(dataDir), onUnexpected: console.error })
for (const name of names) {
  const asked = { serverId, requestId: name, root: '/', files: ['locked', name], mode: 0o700 }
  const said = await agent.setMode(asked).then(
    ({ data }) => data.map(({ mode }) => mode).join(' '),
    (error) => (isFailure(error) ? error.code : String(error)),
  )
  console.log(said)
}
await agent.stop()
