import * as files from '../contract/files/files.ts'
import type { BodyOf, QueryOf } from '../contract/operation.ts'
import { bytesOf } from './bytes.ts'
import { type Download, type DownloadOptions, download } from './download.ts'
import { itemsOf } from './pages.ts'
import type { CallOptions, RawBody } from './request.ts'
import type { Transport } from './transport.ts'
import { type Uploaded, type UploadOptions, type UploadSource, upload } from './upload.ts'
import { type FormOptions, type NamedBlob, uploadForm } from './upload-form.ts'

export type FileQuery = QueryOf<typeof files.listFiles>
export type TrashQuery = QueryOf<typeof files.listTrash>
export type SearchQuery = QueryOf<typeof files.searchFiles>

export interface FileContent {
  bytes: ReadableStream<Uint8Array<ArrayBuffer>>
  sizeBytes: number | null
  /** To be given back as `ifMatch`, so that nobody else's change is overwritten unseen. */
  etag: string | null
}

export interface WriteOptions extends CallOptions {
  ifMatch?: string
  /** False refuses to replace anything. */
  overwrite?: boolean
}

export function createFilesApi(transport: Transport) {
  const list = transport.method(
    files.listFiles,
    (serverId: string, query: FileQuery = {}, options: CallOptions = {}) => ({
      params: { serverId },
      query,
      ...options,
    }),
  )
  const listTrash = transport.method(
    files.listTrash,
    (serverId: string, query: TrashQuery = {}, options: CallOptions = {}) => ({
      params: { serverId },
      query,
      ...options,
    }),
  )
  /** For the operations that take a server and a body, and nothing else. */
  const send = <O extends BodyOperation>(operation: O) =>
    transport.method(operation, (serverId: string, body: BodyOf<O>, options: CallOptions = {}) => {
      return { params: { serverId }, body, ...options } as never
    })

  return {
    /** One page of a directory. */
    list,
    all: (
      serverId: string,
      query: FileQuery = {},
      options: CallOptions = {},
    ): AsyncGenerator<files.FileEntry, void, undefined> =>
      itemsOf((pageQuery: FileQuery) => list(serverId, pageQuery, options), query),
    delete: send(files.deleteFiles),
    makeFolder: send(files.createFolder),
    copy: send(files.copyFile),
    move: send(files.moveFiles),
    setMode: send(files.setFileMode),
    pack: send(files.packFiles),
    unpack: send(files.unpackFile),
    pull: send(files.pullFile),
    search: transport.method(files.searchFiles, (serverId: string, query: SearchQuery, options: CallOptions = {}) => ({
      params: { serverId },
      query,
      ...options,
    })),
    usage: transport.method(files.readUsage, (serverId: string, options: CallOptions = {}) => ({
      params: { serverId },
      ...options,
    })),

    /** Where to upload to: by a form, or by tus for what must be able to resume. */
    requestUpload: transport.method(files.requestUpload, (serverId: string, options: CallOptions = {}) => ({
      params: { serverId },
      ...options,
    })),
    /** Sends a file and goes on by itself after a break: of the connection, or of the service. */
    upload: (serverId: string, source: UploadSource, options: UploadOptions): Promise<Uploaded> =>
      upload(transport, serverId, source, options),
    /** Sends many small files in one request: all of them arrive, or none. */
    uploadMany: (
      serverId: string,
      blobs: readonly NamedBlob[],
      options: FormOptions = {},
    ): Promise<files.FileEntry[]> => uploadForm(transport, serverId, blobs, options),
    /** A link that downloads a file as it is, with ranges, or a folder as an archive. */
    requestDownload: transport.method(
      files.requestDownload,
      (serverId: string, query: QueryOf<typeof files.requestDownload>, options: CallOptions = {}) => ({
        params: { serverId },
        query,
        ...options,
      }),
    ),
    /** A file, gone on with after a break until every byte is there, or a folder as an archive. */
    download: (serverId: string, path: string, options: DownloadOptions = {}): Promise<Download> =>
      download(transport, serverId, path, options),
    read: Object.assign(
      async (serverId: string, path: string, options: CallOptions = {}): Promise<FileContent> => {
        const response = await transport.open(
          files.readContent,
          { params: { serverId }, query: { path }, ...options },
          { accept: '*/*' },
        )
        const length = response.headers.get('content-length')
        return {
          bytes: bytesOf(response),
          sizeBytes: length === null ? null : Number(length),
          etag: response.headers.get('etag'),
        }
      },
      { operation: files.readContent },
    ),
    write: transport.method(
      files.writeContent,
      (serverId: string, path: string, body: RawBody, { ifMatch, overwrite, ...options }: WriteOptions = {}) => ({
        params: { serverId },
        query: { path, ...(overwrite === undefined ? {} : { overwrite }) },
        body,
        ...options,
        headers: { ...options.headers, ...(ifMatch ? { 'if-match': ifMatch } : {}) },
      }),
    ),

    /** One page of what was deleted or replaced, newest first. */
    listTrash,
    allTrash: (
      serverId: string,
      query: TrashQuery = {},
      options: CallOptions = {},
    ): AsyncGenerator<files.TrashItem, void, undefined> =>
      itemsOf((pageQuery: TrashQuery) => listTrash(serverId, pageQuery, options), query),
    restore: transport.method(files.restoreTrash, (serverId: string, trashId: string, options: CallOptions = {}) => ({
      params: { serverId, trashId },
      ...options,
    })),
    emptyTrash: transport.method(files.emptyTrash, (serverId: string, options: CallOptions = {}) => ({
      params: { serverId },
      ...options,
    })),
  }
}

type BodyOperation =
  | typeof files.deleteFiles
  | typeof files.createFolder
  | typeof files.copyFile
  | typeof files.moveFiles
  | typeof files.setFileMode
  | typeof files.packFiles
  | typeof files.unpackFile
  | typeof files.pullFile
