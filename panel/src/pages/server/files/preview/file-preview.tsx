import { Trans, useLingui } from '@lingui/react/macro'
import { Button } from '@mantine/core'
import { joinPath, useFileActions } from '../../../../api/files.ts'
import { Icon } from '../../../../components/icon.tsx'
import { showFailure } from '../../../../components/toasts.tsx'
import { ImagePreview } from './image-preview.tsx'
import { looksLikeImage } from './image-type.ts'
import { LogPreview } from './log-preview.tsx'
import css from './preview.module.css'

interface Props {
  serverId: string
  directory: string
  name: string
  onClose: () => void
}

/** Looked at, not edited. What is shown is text or a picture, and never a page. */
export default function FilePreview({ serverId, directory, name, onClose }: Props) {
  const { t } = useLingui()
  const { download } = useFileActions(serverId)
  const path = joinPath(directory, name)
  return (
    <section className={css.preview} aria-label={name}>
      <div className="row">
        <h2 className="cut grow">{name}</h2>
        <Button
          variant="default"
          leftSection={<Icon name="download" size={16} />}
          onClick={() =>
            download.mutate(path, { onError: (error) => showFailure(t`It could not be downloaded`, error) })
          }
        >
          <Trans>Download</Trans>
        </Button>
        <Button variant="default" onClick={onClose}>
          <Trans>Close</Trans>
        </Button>
      </div>
      {looksLikeImage(name) ? (
        <ImagePreview serverId={serverId} path={path} name={name} />
      ) : (
        <LogPreview serverId={serverId} path={path} />
      )}
    </section>
  )
}
