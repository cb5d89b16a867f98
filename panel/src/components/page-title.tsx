import { type ReactNode, useEffect } from 'react'
import css from './page-title.module.css'

/** The heading of a page, which is its title in the browser too, and what can be done on it. */
export function PageTitle({ title, children }: { title: string; children?: ReactNode }) {
  useDocumentTitle(title)
  return (
    <div className={css.title}>
      <h1 className="cut grow">{title}</h1>
      {children}
    </div>
  )
}

export function useDocumentTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Gamekeeper`
  }, [title])
}
