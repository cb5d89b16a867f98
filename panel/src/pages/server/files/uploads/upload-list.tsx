import { useLingui } from '@lingui/react/macro'
import { CloseButton, Progress } from '@mantine/core'
import { ProblemText } from '../../../../components/problem.tsx'
import { formatBytes } from '../../../../i18n/format.ts'
import css from '../files-tab.module.css'
import { type Upload, useUploads } from './shown-uploads.ts'
import { dismissUpload } from './uploads.ts'

/** More than that at once, as in a folder of a thousand files, are summed up. */
const SHOWN_AT_MOST = 6

export function UploadList({ serverId }: { serverId: string }) {
  const { t } = useLingui()
  const uploads = useUploads(serverId)
  if (uploads.length === 0) return null
  const failed = uploads.filter(({ state }) => typeof state === 'object')
  const others = uploads.filter(({ state }) => typeof state !== 'object')
  const shown = [...failed, ...others].slice(0, SHOWN_AT_MOST)
  const hidden = uploads.length - shown.length
  return (
    <ul className={`card ${css.uploads}`} aria-label={t`Uploads`}>
      {shown.map((upload) => (
        <UploadRow key={upload.id} upload={upload} />
      ))}
      {hidden > 0 && <li className="small faint">{t`and ${hidden} more`}</li>}
    </ul>
  )
}

function UploadRow({ upload: { id, name, state, bytesDone, bytesTotal } }: { upload: Upload }) {
  const { t, i18n } = useLingui()
  const percent = state === 'done' ? 100 : bytesTotal === 0 ? 0 : (bytesDone / bytesTotal) * 100
  return (
    <li>
      <div className={css.upload}>
        <span className="cut grow">{name}</span>
        <span className="small faint">
          {state === 'done'
            ? t`Done`
            : `${formatBytes(bytesDone, i18n.locale)} / ${formatBytes(bytesTotal, i18n.locale)}`}
        </span>
        <CloseButton size="sm" aria-label={t`Cancel the upload of ${name}`} onClick={() => dismissUpload(id)} />
      </div>
      {typeof state === 'object' ? (
        <ProblemText error={state.error} />
      ) : (
        <Progress value={percent} size="sm" aria-label={t`Upload of ${name}`} />
      )}
    </li>
  )
}
