import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { useMemo } from 'react'
import css from './diff-view.module.css'
import { type Hunk, hunksOf } from './hunks.ts'
import { diffLines } from './line-diff.ts'

interface Props {
  label: string
  before: string
  after: string
}

/** More would only slow the page down. */
const SHOWN_AT_MOST = 3000
const SIGNS = { same: ' ', removed: '−', added: '+' }

export function DiffView({ label, before, after }: Props) {
  const { t } = useLingui()
  const hunks = useMemo(() => hunksOf(diffLines(before, after)), [before, after])
  if (before === after) {
    return (
      <p className="soft">
        <Trans>No difference.</Trans>
      </p>
    )
  }
  const counted = hunks.map((hunk) => (hunk.kind === 'lines' ? hunk.lines.length : 1))
  const isTooLong = counted.reduce((sum, count) => sum + count, 0) > SHOWN_AT_MOST
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keyboard
    <section className={`card ${css.diff}`} aria-label={label} tabIndex={0}>
      {shortened(hunks).map((hunk, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they never change places
        <HunkLines key={index} hunk={hunk} />
      ))}
      {isTooLong && <p className={css.skipped}>{t`The rest is too long to be shown.`}</p>}
    </section>
  )
}

function shortened(hunks: readonly Hunk[]): Hunk[] {
  let left = SHOWN_AT_MOST
  const shown: Hunk[] = []
  for (const hunk of hunks) {
    if (left <= 0) break
    shown.push(hunk.kind === 'lines' ? { ...hunk, lines: hunk.lines.slice(0, left) } : hunk)
    left -= hunk.kind === 'lines' ? hunk.lines.length : 1
  }
  return shown
}

function HunkLines({ hunk }: { hunk: Hunk }) {
  if (hunk.kind === 'skipped') {
    return (
      <p className={css.skipped}>
        <Plural value={hunk.count} one="# line that is the same" other="# lines that are the same" />
      </p>
    )
  }
  return (
    <pre>
      {hunk.lines.map(({ kind, text }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they never change places
        <span key={index} className={css.line} data-kind={kind}>
          <span className={css.sign}>{SIGNS[kind]}</span>
          {text}
          {'\n'}
        </span>
      ))}
    </pre>
  )
}
