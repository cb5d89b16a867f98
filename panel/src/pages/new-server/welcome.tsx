import { Trans, useLingui } from '@lingui/react/macro'
import { useDocumentTitle } from '../../components/page-title.tsx'
import { TemplateList } from './template-list.tsx'
import css from './welcome.module.css'

/** What somebody sees who has no server yet: the first game is a few clicks away. */
export default function Welcome() {
  const { t } = useLingui()
  useDocumentTitle(t`Welcome`)
  return (
    <div className="stack">
      <div className={css.hero}>
        <h1>
          <Trans>Welcome! Which game shall it be?</Trans>
        </h1>
        <ol className={css.steps}>
          <li>
            <Trans>Pick a game</Trans>
          </li>
          <li>
            <Trans>Give it a name</Trans>
          </li>
          <li>
            <Trans>Watch it start</Trans>
          </li>
        </ol>
      </div>
      <TemplateList />
    </div>
  )
}
