import type { ReactNode } from 'react'
import css from './empty.module.css'
import { Icon, type IconName } from './icon.tsx'

/** Nothing is there yet: says so, and what to do next. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ReactNode }) {
  return (
    <div className={css.empty}>
      <span className={css.badge}>
        <Icon name={icon} size={26} />
      </span>
      <h2>{title}</h2>
      <div className={css.next}>{children}</div>
    </div>
  )
}
