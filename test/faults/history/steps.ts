// What a client can do to its plot: the request, the event that must be recorded, and the plot afterwards. Decided from
// the model alone, so that a seed repeats it.
import { contentOf } from '../files-content.ts'
import type { Call } from './history.ts'
import { DIRECTORY, discard, type Plot, type PlotState, place, subtree, type TrashedTree, without } from './model.ts'
import type { Random } from './random.ts'

export interface Step {
  name: string
  call: Call
  event: string
  /** The plot when it has happened. */
  after: PlotState
  /** Where it can happen in part: states in between, each with its entry. */
  between?: PlotState[]
  /** Whether it happens without an entry, since nothing changes. */
  isNothing?: boolean
  /** Sent as an upload, to an address that is asked for first. */
  upload?: { protocol: 'form' | 'tus'; directory: string; files: { name: string; bytes: Buffer<ArrayBuffer> }[] }
  /** The item of the trash whose id is looked up first. */
  trashed?: TrashedTree
}

export interface StepContext {
  plot: Plot
  random: Random
  newLabel(): string
  maxBytes: number
}

type Planner = (context: StepContext) => Step | undefined

const NAMES = ['f0', 'f1', 'f2', 'f3']
const FOLDERS = ['d0', 'd1']

const filesOf = ({ plot }: StepContext) => `/files/${plot.server.id}`
const pathsOf = ({ plot }: StepContext, wanted: (label: string) => boolean) =>
  [...plot.state.tree].filter(([, label]) => wanted(label)).map(([path]) => path)
const isFile = (label: string) => label !== DIRECTORY

/** The plot itself, or a folder in it that is there or may be. */
function directory({ plot, random }: StepContext): string {
  const name = random.pick(['', '', ...FOLDERS])
  if (name === '') return plot.path
  const path = `${plot.path}/${name}`
  const there = plot.state.tree.get(path)
  return there === undefined || there === DIRECTORY ? path : plot.path
}

function filePath(context: StepContext): string {
  return `${directory(context)}/${context.random.pick(NAMES)}`
}

function newFile({ random, newLabel, maxBytes }: StepContext) {
  const label = newLabel()
  return { label, bytes: contentOf(label, random.chance(0.2) ? random.int(maxBytes) : random.int(2000)) }
}

/** A name that nothing but a file has. */
const takesFile = ({ plot }: StepContext, path: string) => plot.state.tree.get(path) !== DIRECTORY

const write: Planner = (context) => {
  const path = filePath(context)
  if (!takesFile(context, path)) return undefined
  const { label, bytes } = newFile(context)
  return {
    name: 'write',
    call: { method: 'PUT', target: `${filesOf(context)}/content?path=${encodeURIComponent(path)}`, bytes },
    event: 'file.written',
    after: place(context.plot.state, path, new Map([['', label]])),
  }
}

const upload =
  (protocol: 'form' | 'tus'): Planner =>
  (context) => {
    const into = directory(context)
    const count = protocol === 'form' && context.random.chance(0.3) ? 2 : 1
    const names = NAMES.slice(0, count)
    if (!names.every((name) => takesFile(context, `${into}/${name}`))) return undefined
    const files = names.map((name) => ({ name, ...newFile(context) }))
    const states = [context.plot.state]
    for (const { name, label } of files)
      states.push(place(states.at(-1) ?? context.plot.state, `${into}/${name}`, new Map([['', label]])))
    return {
      name: protocol,
      call: { method: 'GET', target: `${filesOf(context)}/upload` },
      event: 'file.uploaded',
      after: states.at(-1) ?? context.plot.state,
      between: states.slice(1, -1),
      upload: { protocol, directory: into, files },
    }
  }

const makeFolder: Planner = (context) => {
  const { plot, random } = context
  const name = random.pick(FOLDERS)
  const path = `${plot.path}/${name}`
  const there = plot.state.tree.get(path)
  if (there !== undefined && there !== DIRECTORY) return undefined
  return {
    name: 'folder',
    call: { method: 'POST', target: `${filesOf(context)}/folder`, json: { path: plot.path, name } },
    event: 'file.folder_created',
    after: there === undefined ? place(plot.state, path, new Map([['', DIRECTORY]])) : plot.state,
    isNothing: there !== undefined,
  }
}

const copy: Planner = (context) => {
  const { plot, random } = context
  const paths = pathsOf(context, () => true)
  if (paths.length === 0 || paths.length > 30) return undefined
  const from = random.pick(paths)
  const stem = from.replace(/ copy( \d+)?$/, '')
  let to = `${stem} copy`
  for (let number = 2; plot.state.tree.has(to); number++) to = `${stem} copy ${number}`
  return {
    name: 'copy',
    call: { method: 'POST', target: `${filesOf(context)}/copy`, json: { location: from } },
    event: 'file.copied',
    after: place(plot.state, to, subtree(plot.state.tree, from)),
  }
}

const move: Planner = (context) => {
  const { plot, random } = context
  const paths = pathsOf(context, () => true)
  if (paths.length === 0) return undefined
  const from = random.pick(paths)
  const isFolder = plot.state.tree.get(from) === DIRECTORY
  const to = isFolder ? `${plot.path}/${random.pick(FOLDERS)} moved` : filePath(context)
  const there = plot.state.tree.get(to)
  if (to === from || to.startsWith(`${from}/`) || from.startsWith(`${to}/`) || there === DIRECTORY) return undefined
  const moved = { ...plot.state, tree: without(plot.state.tree, from) }
  return {
    name: 'move',
    call: {
      method: 'POST',
      target: `${filesOf(context)}/move`,
      json: { moves: [{ from, to }], overwrite: there !== undefined },
    },
    event: 'file.moved',
    after: place(moved, to, subtree(plot.state.tree, from)),
  }
}

const remove: Planner = (context) => {
  const { plot, random } = context
  const paths = pathsOf(context, () => true)
  if (paths.length === 0) return undefined
  const first = random.pick(paths)
  const second = random.pick(paths)
  const isApart = !`${first}/`.startsWith(`${second}/`) && !`${second}/`.startsWith(`${first}/`)
  const doomed = isApart && random.chance(0.4) ? [first, second] : [first]
  const states = [plot.state]
  for (const path of doomed) states.push(discard(states.at(-1) ?? plot.state, path))
  const names = doomed.map((path) => path.slice(plot.path.length + 1))
  return {
    name: 'delete',
    call: {
      method: 'DELETE',
      target: filesOf(context),
      json: { root: plot.path, files: random.chance(0.2) ? [...names, 'never there'] : names },
    },
    event: 'file.deleted',
    after: states.at(-1) ?? plot.state,
    between: states.slice(1, -1),
  }
}

const deleteMissing: Planner = (context) => ({
  name: 'delete nothing',
  call: { method: 'DELETE', target: filesOf(context), json: { root: context.plot.path, files: ['never there'] } },
  event: 'file.deleted',
  after: context.plot.state,
  isNothing: true,
})

const restoreTrash: Planner = (context) => {
  const { plot, random } = context
  const { tree, trash } = plot.state
  const isUnique = ({ path }: TrashedTree) => trash.filter((other) => other.path === path).length === 1
  const parentIsFile = (path: string) => isFile(tree.get(path.replace(/\/[^/]*$/, '')) ?? DIRECTORY)
  const items = trash.filter((item) => isUnique(item) && !tree.has(item.path) && !parentIsFile(item.path))
  if (items.length === 0) return undefined
  const item = random.pick(items)
  const kept = { ...plot.state, trash: trash.filter((other) => other !== item) }
  return {
    name: 'restore from trash',
    call: { method: 'POST', target: `${filesOf(context)}/trash/{trashId}/restore` },
    event: 'file.restored',
    after: place(kept, item.path, item.tree),
    trashed: item,
  }
}

export const STEPS = {
  write,
  form: upload('form'),
  tus: upload('tus'),
  makeFolder,
  copy,
  move,
  remove,
  deleteMissing,
  restoreTrash,
} as const satisfies Record<string, Planner>
export type StepName = keyof typeof STEPS

/** How often each is done, where a theme has no wish of its own. */
export const EVERYTHING: Record<StepName, number> = {
  write: 5,
  form: 2,
  tus: 2,
  makeFolder: 2,
  copy: 2,
  move: 2,
  remove: 3,
  deleteMissing: 1,
  restoreTrash: 2,
}

export function planStep(context: StepContext, weights: Partial<Record<StepName, number>>): Step {
  const names = Object.entries(weights).flatMap(([name, weight]) => Array<StepName>(weight).fill(name as StepName))
  for (let attempt = 0; attempt < 20; attempt++) {
    const step = STEPS[context.random.pick(names)](context)
    if (step) return step
  }
  const step = write(context)
  if (!step) throw new Error(`nothing can be done in ${context.plot.path}`)
  return step
}
