// Loaded into a service before its own code: writes down, in order, which files it syncs and renames.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const file = process.env.TRACE_FILES_TO ?? ''
const { fsync, fsyncSync, fdatasync, fdatasyncSync, linkSync, renameSync, readlinkSync, appendFileSync } = fs

/** A name below an open directory is addressed by its descriptor. */
const real = (path: unknown) =>
  String(path).replace(/^\/proc\/(?:self|\d+)\/fd\/(\d+)/, (_, descriptor) =>
    readlinkSync(`/proc/self/fd/${descriptor}`),
  )
const note = (call: string, ...paths: unknown[]) => appendFileSync(file, `${[call, ...paths.map(real)].join(' ')}\n`)
const ofDescriptor = (descriptor: number) => `/proc/self/fd/${descriptor}`

for (const [name, call] of Object.entries({ fsync, fdatasync }))
  Object.assign(fs, {
    [name]: (descriptor: number, done: fs.NoParamCallback) => {
      const path = real(ofDescriptor(descriptor))
      call(descriptor, (error) => {
        note('sync', path)
        done(error)
      })
    },
  })
for (const [name, call] of Object.entries({ fsyncSync, fdatasyncSync }))
  Object.assign(fs, {
    [name]: (descriptor: number) => {
      call(descriptor)
      note('sync', ofDescriptor(descriptor))
    },
  })
for (const [name, call] of Object.entries({ linkSync, renameSync }))
  Object.assign(fs, {
    [name]: (from: fs.PathLike, to: fs.PathLike) => {
      call(from, to)
      note('place', to)
    },
  })
syncBuiltinESMExports()
