// What we believe the service holds. A server's files are divided into plots, one for each client: within a plot things
// happen one after another, so what must be there is known exactly, also after a request that nobody heard the answer of.
import type { Outcome } from './history.ts'

/** In place of the label of a file's content. */
export const DIRECTORY = '/'

/** From the path to the label of what is there. */
export type Tree = ReadonlyMap<string, string>

export interface TrashedTree {
  path: string
  /** From the path below it, empty for the thing itself. */
  tree: Tree
}

export interface PlotState {
  tree: Tree
  /** In the trash for sure. More may be there: nobody minds what can be had back twice. */
  trash: readonly TrashedTree[]
}

/** One way in which a request may have ended, and how often its event is recorded then. */
export interface Alternative {
  state: PlotState
  entries: number
}

export interface Doubt {
  op: string
  event: string
  asked: string
  /** The first is that nothing happened. */
  alternatives: Alternative[]
}

export interface Plot {
  readonly server: ServerModel
  readonly path: string
  state: PlotState
  doubt: Doubt | null
}

export interface BackupModel {
  id: string
  isLocked: boolean
  /** What it holds of each plot, where it was made while nobody wrote; null where that is not known. */
  trees: ReadonlyMap<string, Tree> | null
  /** Whether somebody asked for its deletion; `unknown` where nobody heard the answer. */
  deletion: 'none' | 'asked' | 'unknown'
}

export interface ServerModel {
  readonly id: string
  readonly name: string
  /** The greatest quota that the server has had, null for none. */
  quotaBytes: number | null
  readonly plots: Plot[]
  readonly backups: Map<string, BackupModel>
  /** Whether its deletion was asked for. */
  isDeleted: boolean
}

export const emptyState: PlotState = { tree: new Map(), trash: [] }

/** The paths at and below a path, with what is there. */
export function subtree(tree: Tree, path: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const [each, label] of tree)
    if (each === path || each.startsWith(`${path}/`)) found.set(each.slice(path.length), label)
  return found
}

export function without(tree: Tree, path: string): Map<string, string> {
  return new Map([...tree].filter(([each]) => each !== path && !each.startsWith(`${path}/`)))
}

export function withSubtree(tree: Tree, path: string, added: Tree): Map<string, string> {
  const changed = new Map(tree)
  for (const parent of parentsOf(path)) if (!changed.has(parent)) changed.set(parent, DIRECTORY)
  for (const [below, label] of added) changed.set(path + below, label)
  return changed
}

/** From the top of the plot down, without the plot itself. */
function parentsOf(path: string): string[] {
  const names = path.split('/').slice(1, -1)
  return names.map((_, index) => `/${names.slice(0, index + 1).join('/')}`).slice(1)
}

/** Takes what is at the path away and puts it into the trash; as it is where nothing is there. */
export function discard(state: PlotState, path: string): PlotState {
  if (!state.tree.has(path)) return state
  const item = { path, tree: subtree(state.tree, path) }
  return { tree: without(state.tree, path), trash: [...state.trash, item] }
}

/** Puts something at a path; what was there goes to the trash. */
export function place(state: PlotState, path: string, added: Tree): PlotState {
  const cleared = discard(state, path)
  return { ...cleared, tree: withSubtree(cleared.tree, path, added) }
}

export function describeTree(tree: Tree): string {
  return JSON.stringify([...tree].map(([path, label]) => `${path}${label === DIRECTORY ? '/' : `=${label}`}`).sort())
}

export const describeItem = ({ path, tree }: TrashedTree) => `${path} ${describeTree(tree)}`

/** What is missing of `wanted` in `found`, the same thing twice counted twice. */
export function missingFrom(found: readonly string[], wanted: readonly string[]): string[] {
  const left = new Map<string, number>()
  for (const each of found) left.set(each, (left.get(each) ?? 0) + 1)
  return wanted.filter((each) => {
    const count = left.get(each) ?? 0
    left.set(each, count - 1)
    return count <= 0
  })
}

/** What the tree and the trash of a plot hold by their labels: what must not be lost. */
export function labelsOf({ tree, trash }: PlotState): string[] {
  return [...tree.values(), ...trash.flatMap((item) => [...item.tree.values()])].filter((label) => label !== DIRECTORY)
}

export const isOk = (outcome: Outcome): outcome is Extract<Outcome, { kind: 'ok' }> => outcome.kind === 'ok'
