import { Plural, useLingui } from '@lingui/react/macro'
import { SegmentedControl, TextInput } from '@mantine/core'
import { useState } from 'react'
import { joinPath, useFileActions } from '../../../../api/files.ts'
import css from './dialogs.module.css'
import type { Place } from './dialogs.tsx'
import { FormDialog } from './form-dialog.tsx'
import { type NewName, newNames, type RenameRule } from './new-names.ts'

/** So many moves fit into one request. */
const AT_ONCE = 1000

interface Props extends Place {
  names: readonly string[]
  taken: ReadonlySet<string>
}

export function BatchRename({ serverId, directory, onClose, names, taken }: Props) {
  const { t } = useLingui()
  const { move } = useFileActions(serverId)
  const [rule, setRule] = useState<RenameRule>({ kind: 'replace', find: '', replacement: '' })
  const renamed = newNames(names, taken, rule)
  const changed = renamed.filter(({ from, to }) => from !== to)
  const isGood = changed.length > 0 && changed.length <= AT_ONCE && renamed.every(({ fault }) => fault === null)
  const submit = () => {
    // What takes the place of another comes after it.
    const moves = inOrder(changed).map(({ from, to }) => ({
      from: joinPath(directory, from),
      to: joinPath(directory, to),
    }))
    move.mutate(moves, { onSuccess: onClose })
  }
  return (
    <FormDialog
      title={t`Rename ${names.length} items`}
      action={t`Rename`}
      size="lg"
      error={move.error}
      isPending={move.isPending}
      isGood={isGood}
      onSubmit={submit}
      onClose={onClose}
    >
      <RuleFields rule={rule} onChange={setRule} />
      <ul className={css.preview} aria-label={t`Preview`}>
        {renamed.map((each) => (
          <PreviewRow key={each.from} renamed={each} />
        ))}
      </ul>
      <p className="small faint">
        <Plural value={changed.length} one="# changes" other="# change" />
      </p>
    </FormDialog>
  )
}

function RuleFields({ rule, onChange }: { rule: RenameRule; onChange: (rule: RenameRule) => void }) {
  const { t } = useLingui()
  const choose = (kind: string) =>
    onChange(
      kind === 'replace'
        ? { kind: 'replace', find: '', replacement: '' }
        : { kind: 'pattern', pattern: '{name} {n}{ext}', first: 1 },
    )
  return (
    <>
      <SegmentedControl
        value={rule.kind}
        onChange={choose}
        data={[
          { value: 'replace', label: t`Replace text` },
          { value: 'pattern', label: t`By a pattern` },
        ]}
      />
      {rule.kind === 'replace' ? (
        <div className={css.fields}>
          <TextInput
            label={t`Find`}
            value={rule.find}
            onChange={(event) => onChange({ ...rule, find: event.currentTarget.value })}
            data-autofocus
          />
          <TextInput
            label={t`Replace with`}
            value={rule.replacement}
            onChange={(event) => onChange({ ...rule, replacement: event.currentTarget.value })}
          />
        </div>
      ) : (
        <div className={css.fields}>
          <TextInput
            label={t`Pattern`}
            description={'{name} {n} {ext}'}
            value={rule.pattern}
            onChange={(event) => onChange({ ...rule, pattern: event.currentTarget.value })}
          />
          <TextInput
            type="number"
            min={0}
            label={t`First number`}
            description={t`for the first one`}
            value={rule.first}
            onChange={(event) => onChange({ ...rule, first: Math.max(0, Number(event.currentTarget.value) || 0) })}
          />
        </div>
      )}
    </>
  )
}

function PreviewRow({ renamed: { from, to, fault } }: { renamed: NewName }) {
  const { t } = useLingui()
  const faults = {
    empty: t`has no name`,
    slash: t`A name has no slash`,
    taken: t`is there already`,
    twice: t`is there twice`,
  }
  return (
    <li data-changed={from !== to || undefined}>
      <span className="cut">{from}</span>
      <span className="faint" aria-hidden="true">
        →
      </span>
      <span className="cut">{to}</span>
      {fault && <span className={css.fault}>{faults[fault]}</span>}
    </li>
  )
}

/** A move into a name that another one leaves comes after that one. A circle stays as it is, and is refused as a whole. */
function inOrder(renamed: readonly NewName[]): NewName[] {
  const leaving = new Map(renamed.map((each) => [each.from, each]))
  const ordered = new Set<NewName>()
  const visit = (each: NewName, path: Set<NewName>) => {
    if (ordered.has(each) || path.has(each)) return
    path.add(each)
    const blocking = leaving.get(each.to)
    if (blocking) visit(blocking, path)
    ordered.add(each)
  }
  for (const each of renamed) visit(each, new Set())
  return [...ordered]
}
