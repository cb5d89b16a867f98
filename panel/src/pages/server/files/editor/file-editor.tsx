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
import { Conflict } from './conflict.tsx'
import { keepDraft, readDraft } from './drafts.ts'
import css from './file-editor.module.css'
import { readEtag, readTextFile, type TextFile } from './text-file.ts'

/** That of no file: whatever is there, it is not replaced unseen. */
const NO_SUCH_ETAG = '"0"'

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
  const [mine, setMine] = useState('')
  const name = path.split('/').at(-1) ?? path

  const meet = (theirs: TextFile) => {
    setMine(view.current?.readText() ?? '')
    setOther(theirs)
  }
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
      // Somebody may have written it since. Their version must not be taken for this one.
      saved.current = { text, etag: now?.text === text ? now.etag : NO_SUCH_ETAG }
      setChanged(view.current?.readText() !== text)
      showToast(t`${name} is saved.`)
      await queries.invalidateQueries({ queryKey: ['files', serverId] })
    } catch (error) {
      const now = isApiError(error, 'precondition_failed') ? await readTextFile(serverId, path).catch(() => null) : null
      if (now) meet(now)
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
    if (hasDraft) saved.current = { text: draft.base ?? file.text, etag: draft.etag }
    const opened = createCodeView(host.current, {
      name,
      text: hasDraft ? draft.text : file.text,
      label: t`Text of ${name}`,
      isReadOnly,
      onChange: () => {
        const text = opened.readText()
        const isNew = text !== saved.current.text
        setChanged(isNew)
        keepDraft(serverId, path, isNew ? { text, etag: saved.current.etag, base: saved.current.text } : null)
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
  useChangesUnderneath(serverId, path, saved, isSaving || other !== null, (theirs) => {
    // Nothing was typed: there is nothing to choose.
    if (view.current?.readText() !== saved.current.text) return meet(theirs)
    take(theirs)
    showToast(t`${name} was changed on the server. This is the new text.`)
  })
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
      {other && (
        <Conflict
          name={name}
          base={saved.current.text}
          mine={mine}
          theirs={other}
          onKeep={() => void save(other.etag)}
          onTake={() => take(other)}
        />
      )}
      <div ref={host} className={`card ${css.code}`} />
    </section>
  )
}

const POLL_MS = 2000

/** Says so soon after somebody else has written the file. */
function useChangesUnderneath(
  serverId: string,
  path: string,
  saved: React.RefObject<TextFile>,
  isPaused: boolean,
  onChange: (theirs: TextFile) => void,
): void {
  const changed = useRef(onChange)
  changed.current = onChange
  useEffect(() => {
    if (isPaused) return
    const left = new AbortController()
    const { signal } = left
    const check = async () => {
      const known = saved.current
      const etag = await readEtag(serverId, path, known.text === '', signal)
      if (etag === known.etag || known !== saved.current) return
      const theirs = await readTextFile(serverId, path, signal)
      if (theirs && !signal.aborted && known === saved.current) changed.current(theirs)
    }
    // One that fails is made up for by the next, or by saving.
    const timer = setInterval(() => void check().catch(() => {}), POLL_MS)
    return () => {
      clearInterval(timer)
      left.abort()
    }
  }, [serverId, path, saved, isPaused])
}
