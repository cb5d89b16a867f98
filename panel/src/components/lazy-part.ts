// A part of the panel that comes with its first use. React keeps a part that could not be loaded as broken for ever, and so does
// the browser: while the service restarts, or after an upgrade, by which the files have other names, only a new page has it.
import { type ComponentType, type LazyExoticComponent, lazy } from 'react'

const RELOADED_AT_KEY = 'gamekeeper-reloaded-at'
/** A part that is missing right after a reload would be missing after the next one too. */
const RELOAD_AGAIN_MS = 60_000
const RETRY_MS = 1000

export class PartError extends Error {
  override name = 'PartError'
}

// biome-ignore lint/suspicious/noExplicitAny: as React's own `lazy`, for components of any props
export function lazyPart<T extends ComponentType<any>>(load: () => Promise<{ default: T }>): LazyExoticComponent<T> {
  return lazy(() => load().catch(reloadOnce))
}

/** Resolves never: by then the page is another one. */
async function reloadOnce(cause: unknown): Promise<never> {
  if (!mayReload()) throw new PartError('A part of the panel could not be loaded.', { cause })
  while (!(await isServiceUp())) await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  location.reload()
  return new Promise(() => {})
}

/** Where storage is switched off nobody would know that it was tried. */
function mayReload(): boolean {
  try {
    const isRecent = Date.now() - Number(sessionStorage.getItem(RELOADED_AT_KEY)) < RELOAD_AGAIN_MS
    if (!isRecent) sessionStorage.setItem(RELOADED_AT_KEY, String(Date.now()))
    return !isRecent
  } catch {
    return false
  }
}

async function isServiceUp(): Promise<boolean> {
  try {
    return (await fetch('/healthz', { cache: 'no-store' })).ok
  } catch {
    return false
  }
}
