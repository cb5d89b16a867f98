// The plots against the disk. A request whose answer nobody heard has happened or not: which, the disk tells, and then
// the activity must tell the same.
import { type Doubt, describeItem, describeTree, missingFrom, type Plot, type PlotState, type Tree } from '../model.ts'
import type { Round } from '../round.ts'
import { BROKEN, filesFolder, namesIn, readTrash, readTree, stagingFolder } from './disk.ts'

/** Once the service has started again and nobody writes. Every plot is known exactly afterwards. */
export function settlePlots(round: Round): void {
  for (const server of round.servers) {
    if (server.isDeleted) continue
    const tree = readTree(filesFolder(round.keeper.dataDir, server.id))
    const trash = readTrash(round.keeper.dataDir, server.id).map(describeItem)
    for (const plot of server.plots) {
      const found = plotOf(tree, plot.path)
      for (const [path, label] of found)
        if (label.startsWith(BROKEN)) round.violation(`${path} of ${server.id} is half a file: ${label}`)
      settlePlot(round, plot, found, trash)
    }
  }
}

/** The disk refused something in the middle of a request, and the service goes on: only the files are looked at. */
export function settleDoubtOf(round: Round, plot: Plot): void {
  const tree = readTree(filesFolder(round.keeper.dataDir, plot.server.id))
  const { doubt } = plot
  plot.doubt = null
  if (doubt) plot.state = settleDoubt(round, plot, doubt, plotOf(tree, plot.path))
}

function plotOf(tree: Tree, path: string): Tree {
  return new Map([...tree].filter(([each]) => each.startsWith(`${path}/`)))
}

function settlePlot(round: Round, plot: Plot, tree: Tree, trash: readonly string[]): void {
  const { doubt } = plot
  plot.doubt = null
  if (doubt) plot.state = settleDoubt(round, plot, doubt, tree)
  const where = `${plot.path} of ${plot.server.id}`
  if (describeTree(tree) !== describeTree(plot.state.tree))
    round.violation(`${where} is not what was answered: ${differences(plot.state.tree, tree)}`)
  const lost = missingFrom(trash, plot.state.trash.map(describeItem))
  const [left, kept] = [true, false].map((isLost) =>
    plot.state.trash.filter((item) => lost.includes(describeItem(item)) === isLost),
  )
  if (round.excuses.freesTrash)
    round.leftTrash.push(...(left ?? []).map(({ path }) => ({ serverId: plot.server.id, path })))
  else if (lost.length > 0)
    round.violation(`${where}: ${lost.length} things left the trash, and nobody asked for that, ${lost[0]} first`)
  // What is wrong is said once, and the round goes on from what there is.
  plot.state = { tree, trash: kept ?? [] }
}

function settleDoubt(round: Round, plot: Plot, doubt: Doubt, tree: Tree): PlotState {
  const because = (what: string) => `${doubt.asked} was not answered with success, and ${what} on disk`
  const happened = doubt.alternatives.find(({ state }) => describeTree(state.tree) === describeTree(tree))
  if (happened) {
    const isThere = happened.entries > 0
    round.expect(doubt.op, doubt.event, happened.entries, because(isThere ? 'it is' : 'it is not'))
    return happened.state
  }
  const [before] = doubt.alternatives
  const difference = before ? differences(before.state.tree, tree) : ''
  round.violation(`${doubt.asked} of ${plot.server.id} happened by half: ${difference}`)
  return { tree, trash: plot.state.trash }
}

function differences(wanted: Tree, found: Tree): string {
  const lines = (tree: Tree) => JSON.parse(describeTree(tree)) as string[]
  const missing = missingFrom(lines(found), lines(wanted))
  const added = missingFrom(lines(wanted), lines(found))
  return `missing ${JSON.stringify(missing)}, unexpected ${JSON.stringify(added)}`
}

/** Uploads that are not finished keep their bytes, those that are keep a record; everything else in staging is rubbish. */
export function checkStaging(round: Round): void {
  for (const server of round.servers) {
    if (server.isDeleted) continue
    const left = namesIn(stagingFolder(round.keeper.dataDir, server.id))
    const strangers = left.filter((name) => !/^(part-upl_[0-9a-z]+(\.json)?|done-upl_[0-9a-z]+\.json)$/.test(name))
    if (strangers.length > 0)
      round.violation(`staging of ${server.id} holds what nobody needs: ${strangers.join(', ')}`)
  }
}
