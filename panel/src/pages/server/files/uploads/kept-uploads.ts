// Uploads under way, with their files, in this browser's database: after a reload of the page they go on by themselves.

export interface KeptUpload {
  key: string
  /** The tab that sends it. Another one leaves it alone. */
  tab: string
  /** Who sends it, by the id of their token. It waits for them while somebody else is signed in, or nobody. */
  owner: string
  serverId: string
  directory: string
  name: string
  file: File
  startedAt: number
  /** Where the service has it; null until it does. */
  url: string | null
}

const DATABASE = 'gamekeeper-uploads'
const STORE = 'uploads'
/** The service keeps what has arrived for a day. */
const KEPT_MS = 24 * 3600_000

let opened: Promise<IDBDatabase> | undefined

function open(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1)
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: 'key' })
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
  return opened
}

/** A browser without a database, or with a full one, keeps nothing: then a reload ends the uploads. */
async function change(work: (store: IDBObjectStore) => void): Promise<void> {
  try {
    const transaction = (await open()).transaction(STORE, 'readwrite')
    work(transaction.objectStore(STORE))
    await new Promise((resolve) => {
      transaction.oncomplete = resolve
      transaction.onabort = resolve
    })
  } catch {
    return
  }
}

/** Survives a reload, and belongs to no other tab. */
function tabId(): string {
  const key = 'gamekeeper-tab'
  const id = sessionStorage.getItem(key) ?? `${Date.now()}-${Math.random()}`
  sessionStorage.setItem(key, id)
  return id
}

let lastNumber = 0
export function newKeptUpload(
  upload: Pick<KeptUpload, 'owner' | 'serverId' | 'directory' | 'name' | 'file'>,
): KeptUpload {
  const tab = tabId()
  return { ...upload, tab, key: `${tab}-${Date.now()}-${++lastNumber}`, startedAt: Date.now(), url: null }
}

export const keepUploads = (uploads: readonly KeptUpload[]) =>
  change((store) => {
    for (const upload of uploads) store.put(upload)
  })

export const forgetUploads = (keys: readonly string[]) =>
  change((store) => {
    for (const key of keys) store.delete(key)
  })

/** What they had under way in this tab before it was reloaded. What is too old is forgotten, whosever it was. */
export async function readKeptUploads(owner: string): Promise<KeptUpload[]> {
  let all: KeptUpload[] = []
  await change((store) => {
    const request = store.getAll()
    request.onsuccess = () => {
      all = request.result as KeptUpload[]
      for (const { key, startedAt } of all) if (Date.now() - startedAt > KEPT_MS) store.delete(key)
    }
  })
  const tab = tabId()
  const isTheirs = (upload: KeptUpload) => upload.tab === tab && upload.owner === owner
  return all.filter((upload) => isTheirs(upload) && Date.now() - upload.startedAt <= KEPT_MS)
}
