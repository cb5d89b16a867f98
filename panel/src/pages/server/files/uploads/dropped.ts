// Files out of a drop, those within folders included.

export interface DroppedFile {
  /** Below the folder that it was dropped into, with slashes. */
  name: string
  file: File
}

/** Rather than text, or a link of the page. */
export const bringsFiles = (transfer: DataTransfer | null): transfer is DataTransfer =>
  transfer?.types.includes('Files') ?? false

/** To be called while the drop is handled: the browser empties it afterwards. */
export function readDrop(transfer: DataTransfer): Promise<DroppedFile[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null)
  return Promise.all(entries.map((entry) => readEntry(entry, ''))).then((found) => found.flat())
}

async function readEntry(entry: FileSystemEntry, prefix: string): Promise<DroppedFile[]> {
  const name = prefix + entry.name
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))
    return [{ name, file }]
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader()
  const found: DroppedFile[] = []
  for (;;) {
    // It hands out a hundred at a time, and none at the end.
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject))
    if (batch.length === 0) return found
    for (const each of batch) found.push(...(await readEntry(each, `${name}/`)))
  }
}
