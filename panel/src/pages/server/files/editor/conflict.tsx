import { Trans, useLingui } from '@lingui/react/macro'
import { Button, SegmentedControl } from '@mantine/core'
import { useState } from 'react'
import { DiffView } from '../diff/diff-view.tsx'
import css from './file-editor.module.css'
import type { TextFile } from './text-file.ts'

interface Props {
  name: string
  /** What both began with. */
  base: string
  mine: string
  theirs: TextFile
  onKeep: () => void
  onTake: () => void
}

/** The file has changed underneath: what they changed, what you changed, and what lies between the two. */
export function Conflict({ name, base, mine, theirs, onKeep, onTake }: Props) {
  const { t } = useLingui()
  const [side, setSide] = useState<'theirs' | 'mine' | 'both'>('theirs')
  const sides = {
    theirs: { label: t`What changed on the server`, before: base, after: theirs.text },
    mine: { label: t`What you changed`, before: base, after: mine },
    both: { label: t`From the server's to yours`, before: theirs.text, after: mine },
  }
  return (
    <div className="stack" role="alert">
      <div className={css.notice}>
        <span className="grow">
          <Trans>{name} has changed on the server since you opened it.</Trans>
        </span>
        <Button size="compact-sm" onClick={onKeep}>
          <Trans>Keep mine</Trans>
        </Button>
        <Button size="compact-sm" variant="default" onClick={onTake}>
          <Trans>Take the other</Trans>
        </Button>
      </div>
      <SegmentedControl
        className={css.sides}
        size="xs"
        value={side}
        onChange={(value) => setSide(value as typeof side)}
        data={[
          { value: 'theirs', label: t`Theirs` },
          { value: 'mine', label: t`Yours` },
          { value: 'both', label: t`Between them` },
        ]}
      />
      <div>
        <p className="small soft">{sides[side].label}</p>
        <DiffView {...sides[side]} />
      </div>
    </div>
  )
}
