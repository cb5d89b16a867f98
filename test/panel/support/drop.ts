import type { Page } from 'playwright-core'

/** Lets go of files and folders of this machine at a place of the page, as somebody would out of a file manager. */
export async function dropFiles(page: Page, place: { x: number; y: number }, files: string[]): Promise<void> {
  const cdp = await page.context().newCDPSession(page)
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
    const data = { items: [], files, dragOperationsMask: 1 }
    await cdp.send('Input.dispatchDragEvent', { type, ...place, data })
  }
  await cdp.detach()
}
