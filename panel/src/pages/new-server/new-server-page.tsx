import { Trans, useLingui } from '@lingui/react/macro'
import { Link } from 'wouter'
import { PageTitle } from '../../components/page-title.tsx'
import { ServerForm } from './server-form.tsx'
import { EMPTY_SERVER, TemplateList } from './template-list.tsx'

/** Without a template it offers all of them. */
export default function NewServerPage({ templateId }: { templateId: string | null }) {
  const { t } = useLingui()
  if (templateId !== null) {
    return <ServerForm key={templateId} templateId={templateId === EMPTY_SERVER ? null : templateId} />
  }
  return (
    <div className="stack">
      <PageTitle title={t`Pick a game`}>
        <Link href="/">
          <Trans>Cancel</Trans>
        </Link>
      </PageTitle>
      <TemplateList />
    </div>
  )
}
