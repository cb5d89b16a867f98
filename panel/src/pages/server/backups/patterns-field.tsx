import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Textarea } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useMay } from '../../../api/access/session.ts'
import { useBackupPreview } from '../../../api/backups.ts'
import { ProblemText } from '../../../components/problem.tsx'
import { formatBytes } from '../../../i18n/format.ts'
import css from './backups-tab.module.css'

/** Long enough that a pattern is not counted letter by letter. */
const TYPING_MS = 400

interface Props {
  serverId: string
  value: string
  onChange: (patterns: string) => void
}

/** What a backup leaves out, with a count of it that follows what is typed. */
export function PatternsField({ serverId, value, onChange }: Props) {
  const { t } = useLingui()
  const mayCount = useMay()('backups:read')
  return (
    <div>
      <Textarea
        label={t`Leave out`}
        description={t`One pattern a line, as in a .gitignore. By default the server's .backupignore counts.`}
        placeholder={'*.log\n/cache/'}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
        rows={3}
        classNames={{ input: 'mono' }}
      />
      {mayCount && <LeftOut serverId={serverId} patterns={value} />}
    </div>
  )
}

function LeftOut({ serverId, patterns }: { serverId: string; patterns: string }) {
  const [settled] = useDebouncedValue(patterns, TYPING_MS)
  const { data, error, isFetching } = useBackupPreview(serverId, settled)
  const isCounting = isFetching || settled !== patterns
  return (
    <div className={`small soft ${css.leftOut}`} role="status" data-counting={isCounting || undefined}>
      {error ? <ProblemText error={error} /> : data ? <Tally {...data} /> : <Trans>Counting the files…</Trans>}
    </div>
  )
}

type TallyProps = NonNullable<ReturnType<typeof useBackupPreview>['data']>

function Tally({ kept, leftOut, isComplete }: TallyProps) {
  const { i18n } = useLingui()
  const outSize = formatBytes(leftOut.sizeBytes, i18n.locale)
  const keptSize = formatBytes(kept.sizeBytes, i18n.locale)
  return (
    <>
      <p>
        <Trans>
          Left out: <Plural value={leftOut.fileCount} one="# file" other="# files" />, {outSize}. Kept:{' '}
          <Plural value={kept.fileCount} one="# file" other="# files" />, {keptSize}.
        </Trans>
      </p>
      {!isComplete && (
        <p>
          <Trans>There are too many to count them all: it is at least this much.</Trans>
        </p>
      )}
    </>
  )
}
