// What is measured inside a page of Chromium.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'

const DIST = join(import.meta.dirname, '../../panel/dist')

/** Of all files of the panel that are asked for meanwhile, whatever encoding the browser prefers. */
export async function gzippedBytes(page: Page, act: () => Promise<unknown>): Promise<number> {
  const paths = new Set<string>()
  page.on('request', (request) => {
    const { pathname } = new URL(request.url())
    if (!pathname.startsWith('/v1/')) paths.add(pathname === '/' ? '/index.html' : pathname)
  })
  await act()
  return [...paths].reduce((sum, path) => sum + gzipSync(readFileSync(join(DIST, path)), { level: 9 }).length, 0)
}

interface Measured {
  shownAt: number
  frames: number[]
  isRunning: boolean
}

/** From now on each page notes when that selector is first there, in milliseconds since its navigation began. */
export async function watchFor(page: Page, selector: string): Promise<void> {
  await page.addInitScript((wanted) => {
    const measured = globalThis as unknown as Measured
    new MutationObserver((_, observer) => {
      if (!document.querySelector(wanted)) return
      observer.disconnect()
      // Once it was painted, and what came with it has run.
      requestAnimationFrame(() => setTimeout(() => Object.assign(measured, { shownAt: performance.now() })))
    }).observe(document, { childList: true, subtree: true })
  }, selector)
}

/** How long each task took that took more than 50 ms. */
export function watchLongTasks(page: Page, forMs: number): Promise<number[]> {
  return page.evaluate(async (ms) => {
    const tasks: number[] = []
    const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration)))
    observer.observe({ type: 'longtask' })
    await new Promise((resolve) => setTimeout(resolve, ms))
    observer.disconnect()
    return tasks
  }, forMs)
}

export async function startFrames(page: Page): Promise<void> {
  await page.evaluate(() => {
    const measured = Object.assign(globalThis as unknown as Measured, { frames: [], isRunning: true })
    let before = performance.now()
    const next = (now: number) => {
      measured.frames.push(now - before)
      before = now
      if (measured.isRunning) requestAnimationFrame(next)
    }
    requestAnimationFrame(next)
  })
}

export function stopFrames(page: Page): Promise<number[]> {
  return page.evaluate(() => {
    const measured = globalThis as unknown as Measured
    measured.isRunning = false
    return measured.frames.slice(1)
  })
}
