import { Trans, useLingui } from '@lingui/react/macro'
import { Button, VisuallyHidden } from '@mantine/core'
import { useRef, useState } from 'react'
import { type ImportedTemplate, isApiError } from '../../../../../src/sdk/index.ts'
import { type TemplateFile, useTemplateActions } from '../../../api/templates.ts'
import { Confirm } from '../../../components/confirm.tsx'
import { Icon } from '../../../components/icon.tsx'
import { showFailure } from '../../../components/toasts.tsx'
import { ImportReport } from './import-report.tsx'
import css from './templates-tab.module.css'

/** A template, or an egg of another panel: dropped or chosen. */
export function TemplateImport() {
  const { t } = useLingui()
  const input = useRef<HTMLInputElement>(null)
  const [isOver, setOver] = useState(false)
  const { add, imported, conflict, start, clear } = useImport()
  const take = async (files: FileList | null) => {
    const [file] = files ?? []
    if (file) start({ name: file.name, text: await file.text() }, false)
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button does the same by keyboard
    <div
      className={css.drop}
      data-over={isOver || undefined}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        void take(event.dataTransfer.files)
      }}
    >
      <Icon name="upload" size={26} />
      <div className="grow">
        <p>
          <strong>
            <Trans>Drop a template or an egg here</Trans>
          </strong>
        </p>
        <p className="small soft">
          <Trans>Eggs of Pterodactyl and Pelican, as JSON or YAML. A report says what became of each part.</Trans>
        </p>
      </div>
      <VisuallyHidden>
        <input
          ref={input}
          type="file"
          aria-label={t`Template or egg to import`}
          tabIndex={-1}
          accept=".json,.yml,.yaml"
          onChange={({ currentTarget }) => {
            void take(currentTarget.files).then(() => {
              currentTarget.value = ''
            })
          }}
        />
      </VisuallyHidden>
      <Button variant="default" loading={add.isPending} onClick={() => input.current?.click()}>
        <Trans>Choose a file</Trans>
      </Button>
      <ImportReport imported={imported} onClose={clear} />
      <Confirm
        isOpen={conflict !== null}
        onClose={clear}
        onConfirm={() => conflict && start(conflict, true)}
        title={t`Replace your template of this id?`}
        text={t`Servers that use it start with the new one from their next start on.`}
        action={t`Replace`}
        color="moss"
      />
    </div>
  )
}

function useImport() {
  const { t } = useLingui()
  const { add } = useTemplateActions()
  const [imported, setImported] = useState<ImportedTemplate | null>(null)
  const [conflict, setConflict] = useState<TemplateFile | null>(null)
  const start = (file: TemplateFile, replace: boolean) =>
    add.mutate(
      { file, replace },
      {
        onSuccess: setImported,
        onError: (error) => {
          if (isApiError(error, 'already_exists') && !replace) setConflict(file)
          else showFailure(t`${file.name} could not be imported`, error)
        },
      },
    )
  const clear = () => {
    setImported(null)
    setConflict(null)
  }
  return { add, imported, conflict, start, clear }
}
