// A file that is dropped where nothing takes it would be opened by the browser in the place of the panel, with all that is under way.

export function ignoreMissedDrops(): void {
  for (const kind of ['dragover', 'drop'] as const) {
    // At the window, which is the last to know: whoever takes it has said so by then.
    addEventListener(kind, (event) => {
      if (event.defaultPrevented || !event.dataTransfer?.types.includes('Files')) return
      event.preventDefault()
      event.dataTransfer.dropEffect = 'none'
    })
  }
}
