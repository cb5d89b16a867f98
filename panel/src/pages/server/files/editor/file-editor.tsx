import { Trans, useLingui } from '@lingui/react/macro'
import { Button, Skeleton } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { isApiError, type WriteOptions } from '../../../../../../src/sdk/index.ts'
import { useMay, useSession } from '../../../../api/access/session.ts'
import { client } from '../../../../api/client.ts'
import { useFileActions } from '../../../../api/files.ts'
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
/** Where the file has gone. */
const NOTHING_THERE = 'none'

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
  const { download } = useFileActions(serverId)
  const save = () => download.mutate(path, { onError: (why) => showFailure(t`It could not be downloaded`, why) })
  if (error) return <Problem error={error} onRetry={() => void refetch()} />
  if (data === undefined) return <Skeleton height={420} radius="md" />
  if (data === null) {
    return (
      <div className="card">
        <Empty icon="file" title={t`This is not a text, or too large to edit here.`}>
          <Button leftSection={<Icon name="download" size={16} />} onClick={save}>
            <Trans>Download</Trans>
          </Button>
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
  const owner = useSession().data?.id ?? ''
  const draftOf = { owner, serverId, path }
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<CodeView>(null)
  const saved = useRef(file)
  const [draft] = useState(() => readDraft(draftOf))
  const hasDraft = draft !== null && draft.text !== file.text
  const [isDraftShown, setDraftShown] = useState(hasDraft)
  const [isChanged, setChanged] = useState(hasDraft)
  const [isSaving, setSaving] = useState(false)
  const [other, setOther] = useState<TextFile | null>(null)
  const [mine, setMine] = useState('')
  const [isGone, setGone] = useState(false)
  /** Keys repeat: a second save of the same would meet the first as a change by another. */
  const isBusy = useRef(false)
  const name = path.split('/').at(-1) ?? path

  const meet = (theirs: TextFile) => {
    setGone(false)
    setMine(view.current?.readText() ?? '')
    setOther(theirs)
  }
  const settle = (text: string, etag: string | null) => {
    saved.current = { text, etag }
    // What was typed meanwhile is a draft of this version, not of the one before.
    const typed = view.current?.readText() ?? text
    keepDraft(draftOf, typed === text ? null : { text: typed, etag, base: text })
    setChanged(typed !== text)
    setDraftShown(false)
    setOther(null)
    setGone(false)
    showToast(t`${name} is saved.`)
    void queries.invalidateQueries({ queryKey: ['files', serverId] })
  }
  /** What to try again with, if anything. */
  const refuse = async (text: string, error: unknown): Promise<TextFile | null> => {
    const isStale = isApiError(error, 'precondition_failed', 'already_exists')
    const now = isStale ? await readNow(serverId, path) : null
    if (now === 'gone') setGone(true)
    else if (now === null) showFailure(t`It could not be saved`, error)
    // The answer to a save that was made has been lost: this is its second attempt.
    else if (now.text === text) settle(text, now.etag)
    // Nobody has changed the text: only its version was not known.
    else if (now.text === saved.current.text) return now
    else meet(now)
    return null
  }
  /** `etag` is that of what may be replaced, or NOTHING_THERE. */
  const save = async (etag: string | null) => {
    if (isReadOnly || isBusy.current) return
    isBusy.current = true
    setSaving(true)
    const text = view.current?.readText() ?? ''
    let again: TextFile | null = null
    try {
      await client.files.write(serverId, path, text, conditionOf(etag))
      const now = await readNow(serverId, path)
      // Somebody may have written it since. Their version must not be taken for this one.
      settle(text, now !== 'gone' && now?.text === text ? now.etag : NO_SUCH_ETAG)
    } catch (error) {
      again = await refuse(text, error)
    } finally {
      isBusy.current = false
      setSaving(false)
    }
    if (again) await save(again.etag)
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
        keepDraft(draftOf, isNew ? { text, etag: saved.current.etag, base: saved.current.text } : null)
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
    keepDraft(draftOf, null)
    setChanged(false)
    setOther(null)
    setGone(false)
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
      {isGone && (
        <div className={css.notice} role="alert">
          <span className="grow">
            <Trans>{name} is no longer there: it was deleted or renamed.</Trans>
          </span>
          <Button size="compact-sm" loading={isSaving} onClick={() => void save(NOTHING_THERE)}>
            <Trans>Save it anew</Trans>
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
      {/* Tab indents, so it has to be said how to leave by keyboard. */}
      <p className="small faint">
        <Trans>Ctrl-S saves, Ctrl-F finds. Escape, then Tab, leaves the text.</Trans>
      </p>
    </section>
  )
}

function conditionOf(etag: string | null): WriteOptions {
  if (etag === NOTHING_THERE) return { overwrite: false }
  return etag === null ? {} : { ifMatch: etag }
}

/** Null: it could not be read, or is no text any more. */
async function readNow(serverId: string, path: string): Promise<TextFile | 'gone' | null> {
  try {
    return await readTextFile(serverId, path)
  } catch (error) {
    return isApiError(error, 'not_found') ? 'gone' : null
  }
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
      if (!theirs || signal.aborted || known !== saved.current) return
      // The same text: written anew, or saved here while its version could not be read.
      if (theirs.text === known.text) saved.current = theirs
      else changed.current(theirs)
    }
    // One that fails is made up for by the next, or by saving.
    const timer = setInterval(() => void check().catch(() => {}), POLL_MS)
    return () => {
      clearInterval(timer)
      left.abort()
    }
  }, [serverId, path, saved, isPaused])
}
