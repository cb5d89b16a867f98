import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { isApiError } from '../../../../../../src/sdk/index.ts'
import { client } from '../../../../api/client.ts'
import { useMay } from '../../../../api/session.ts'
import { Empty } from '../../../../components/empty.tsx'
import { Icon } from '../../../../components/icon.tsx'
import { Problem } from '../../../../components/problem.tsx'
import { showFailure, showToast } from '../../../../components/toasts.tsx'
import { type CodeView, createCodeView } from './code-view.ts'
import { keepDraft, readDraft } from './drafts.ts'
import css from './file-editor.module.css'
import { readTextFile, type TextFile } from './text-file.ts'

interface Props {
  serverId: string
  path: string
  onClose: () => void
}

export default function FileEditor({ serverId, path, onClose }: Props) {
  const { t } = useLingui()
  const { data, error, refetch } = useQuery({
    queryKey: ['text', serverId, path],
    queryFn: ({ signal }) => readTextFile(serverId, path, signal),
    // While somebody types, the text under them stays; a change by another is met when it is saved.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
  })
  if (error) return <Problem error={error} onRetry={() => void refetch()} />
  if (data === undefined) return <Skeleton height={420} radius="md" />
  if (data === null) {
    return (
      <div className="card">
        <Empty icon="file" title={t`This is not a text, or too large to edit here.`}>
          <Button variant="default" onClick={onClose}>
            <Trans>Close</Trans>
          </Button>
        </Empty>
      </div>
    )
  }
  return <Editor serverId={serverId} path={path} file={data} onClose={onClose} />
}

function Editor({ serverId, path, file, onClose }: Props & { file: TextFile }) {
  const { t } = useLingui()
  const queries = useQueryClient()
  const isReadOnly = !useMay()('files:write')
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<CodeView>(null)
  const saved = useRef(file)
  const [draft] = useState(() => readDraft(serverId, path))
  const hasDraft = draft !== null && draft.text !== file.text
  const [isDraftShown, setDraftShown] = useState(hasDraft)
  const [isChanged, setChanged] = useState(hasDraft)
  const [isSaving, setSaving] = useState(false)
  const [other, setOther] = useState<TextFile | null>(null)
  const name = path.split('/').at(-1) ?? path

  /** `etag` is that of what may be replaced. */
  const save = async (etag: string | null) => {
    const text = view.current?.readText() ?? ''
    setSaving(true)
    try {
      await client.files.write(serverId, path, text, etag === null ? {} : { ifMatch: etag })
      keepDraft(serverId, path, null)
      setDraftShown(false)
      setOther(null)
      const now = await readTextFile(serverId, path)
      saved.current = { text, etag: now?.etag ?? null }
      setChanged(view.current?.readText() !== text)
      showToast(t`${name} is saved.`)
      await queries.invalidateQueries({ queryKey: ['files', serverId] })
    } catch (error) {
      const now = isApiError(error, 'precondition_failed') ? await readTextFile(serverId, path).catch(() => null) : null
      if (now) setOther(now)
      else showFailure(t`It could not be saved`, error)
    } finally {
      setSaving(false)
    }
  }
  const saveNow = useRef(save)
  saveNow.current = save

  // biome-ignore lint/correctness/useExhaustiveDependencies: the view keeps its own text from here on
  useEffect(() => {
    if (!host.current) return
    if (hasDraft) saved.current = { text: file.text, etag: draft.etag }
    const opened = createCodeView(host.current, {
      name,
      text: hasDraft ? draft.text : file.text,
      label: t`Text of ${name}`,
      isReadOnly,
      onChange: () => {
        const text = opened.readText()
        const isNew = text !== saved.current.text
        setChanged(isNew)
        keepDraft(serverId, path, isNew ? { text, etag: saved.current.etag } : null)
      },
      onSave: () => void saveNow.current(saved.current.etag),
    })
    view.current = opened
    opened.focus()
    return () => opened.dispose()
  }, [serverId, path])

  const take = (text: TextFile) => {
    saved.current = text
    view.current?.replaceText(text.text)
    keepDraft(serverId, path, null)
    setChanged(false)
    setOther(null)
    setDraftShown(false)
  }
  return (
    <section className={css.editor} aria-label={name}>
      <div className="row">
        <h2 className="cut grow">
          {name} {isChanged && <span className={css.unsaved}>{t`Unsaved`}</span>}
        </h2>
        {!isReadOnly && (
          <Button
            leftSection={<Icon name="check" size={16} />}
            loading={isSaving}
            disabled={!isChanged}
            title={t`Save (Ctrl-S)`}
            onClick={() => void save(saved.current.etag)}
          >
            <Trans>Save</Trans>
          </Button>
        )}
        <Button variant="default" onClick={onClose}>
          <Trans>Close</Trans>
        </Button>
      </div>
      {isDraftShown && !other && (
        <div className={css.notice} role="status">
          <span className="grow">
            <Trans>An unsaved draft from an earlier visit is shown.</Trans>
          </span>
          <Button size="compact-sm" variant="default" onClick={() => take(file)}>
            <Trans>Discard the draft</Trans>
          </Button>
        </div>
      )}
      {other && <Conflict name={name} other={other} onKeep={() => void save(other.etag)} onTake={() => take(other)} />}
      <div ref={host} className={`card ${css.code}`} />
    </section>
  )
}

interface ConflictProps {
  name: string
  other: TextFile
  onKeep: () => void
  onTake: () => void
}

function Conflict({ name, other, onKeep, onTake }: ConflictProps) {
  const { t } = useLingui()
  const host = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!host.current) return
    const label = t`What is on the server now`
    const view = createCodeView(host.current, { name, text: other.text, label, isReadOnly: true })
    return () => view.dispose()
  }, [name, other.text, t])
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
      <p className="small soft">
        <Trans>What is on the server now</Trans>
      </p>
      <div ref={host} className={`card ${css.other}`} />
    </div>
  )
}
