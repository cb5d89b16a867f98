import css from './brand.module.css'

export function Brand() {
  return (
    <span className={css.brand}>
      <svg width="26" height="26" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="9" fill="#1f6f54" />
        <path d="M9 23V12.5l7-4.5 7 4.5V23h-5v-6a2 2 0 0 0-4 0v6z" fill="#f2f7f4" />
      </svg>
      Gamekeeper
    </span>
  )
}
