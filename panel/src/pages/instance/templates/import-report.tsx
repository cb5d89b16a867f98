import { msg } from '@lingui/core/macro'
import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import { Link } from 'wouter'
import type { ImportedTemplate, ReportEntry } from '../../../../../src/sdk/index.ts'
import { Dialog } from '../../../components/dialog.tsx'
import css from './templates-tab.module.css'

const LEVELS = {
  dropped: msg`Left out`,
  changed: msg`Changed`,
  carried: msg`Kept`,
} as const satisfies Record<ReportEntry['level'], unknown>
/** What somebody has to know comes first. */
const ORDER = ['dropped', 'changed', 'carried'] as const

export function ImportReport({ imported, onClose }: { imported: ImportedTemplate | null; onClose: () => void }) {
  const { t } = useLingui()
  const name = imported?.template.name ?? ''
  return (
    <Dialog opened={imported !== null} onClose={onClose} title={t`${name} is imported`} size="lg">
      {imported && (
        <div className="stack">
          <Summary report={imported.report} />
          <ul className={css.report}>
            {imported.report
              .toSorted((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level))
              .map(({ path, level, message }) => (
                <li key={`${path} ${message}`} className={`small ${css.entry}`} data-level={level}>
                  <strong>{t(LEVELS[level])}</strong>
                  <span>
                    <span className="mono">{path}</span> <span className="soft">{message}</span>
                  </span>
                </li>
              ))}
          </ul>
          <div className="row">
            <Button component={Link} href={`/servers/new/${imported.template.id}`}>
              <Trans>Make a server from it</Trans>
            </Button>
            <Button variant="default" onClick={onClose}>
              <Trans>Close</Trans>
            </Button>
          </div>
        </div>
      )}
    </Dialog>
  )
}

function Summary({ report }: { report: readonly ReportEntry[] }) {
  const count = (level: ReportEntry['level']) => report.filter((entry) => entry.level === level).length
  if (report.length === 0) {
    return (
      <p className="soft">
        <Trans>It was a template of ours: everything is as you wrote it.</Trans>
      </p>
    )
  }
  return (
    <p className="soft">
      <Plural value={count('carried')} one="# part was kept" other="# parts were kept" />,{' '}
      <Plural value={count('changed')} one="# was changed" other="# were changed" />,{' '}
      <Plural value={count('dropped')} one="# was left out" other="# were left out" />.
    </p>
  )
}
