import { CopyButton } from './copy-button.tsx'
import css from './secret-text.module.css'

/** A link or a token that is shown this once. */
export function SecretText({ text, label }: { text: string; label: string }) {
  return (
    <p className={css.secret}>
      <span className="mono grow">{text}</span>
      <CopyButton text={text} label={label} />
    </p>
  )
}
