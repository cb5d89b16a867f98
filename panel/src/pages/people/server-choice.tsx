import { useLingui } from '@lingui/react/macro'
import { Checkbox, Radio } from '@mantine/core'
import { useReachesAll } from '../../api/access/session.ts'
import { useServers } from '../../api/servers.ts'
import css from './people-page.module.css'

interface Props {
  value: '*' | string[]
  onChange: (servers: '*' | string[]) => void
}

export function ServerChoice({ value, onChange }: Props) {
  const { t } = useLingui()
  const reachesAll = useReachesAll()
  const { data: servers = [] } = useServers()
  const chosen = value === '*' ? [] : value
  const toggle = (id: string, isChosen: boolean) =>
    onChange(isChosen ? [...chosen, id] : chosen.filter((each) => each !== id))
  return (
    <Radio.Group
      label={t`Servers`}
      value={value === '*' ? 'all' : 'some'}
      onChange={(kind) => onChange(kind === 'all' ? '*' : [])}
    >
      <div className="stack-tight">
        {reachesAll && <Radio value="all" label={t`All servers, also those to come`} />}
        <Radio value="some" label={t`Only these`} />
        {value !== '*' && (
          <div className={css.servers}>
            {servers.map(({ id, name }) => (
              <Checkbox
                key={id}
                label={name}
                checked={chosen.includes(id)}
                onChange={(event) => toggle(id, event.currentTarget.checked)}
              />
            ))}
          </div>
        )}
      </div>
    </Radio.Group>
  )
}
