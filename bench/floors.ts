// The bars of backups beside what nobody gets below on this machine: which are held, which could be, and which cannot.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median, table } from './measure.ts'
import { ours } from './support/backup-ours.ts'
import { restic, TITLES, type Times, type Tool, type Warmth } from './support/backup-peers.ts'
import { format, type Medians, measureTree, mediansOf, ROUNDS } from './support/backup-rounds.ts'
import { type Bars, type BenchTree, wantedTrees } from './support/backup-trees.ts'
import { BLOCK_KIB, type Changed, createFloor, type Floor, floorName } from './support/floors/floor.ts'
import { createNodeFloor, FORMAT_FLOOR, formatFloor, nodeFloorName } from './support/floors/node-floor.ts'
import { buildProgram, type FloorProgram, type Hash } from './support/floors/program.ts'
import { createServiceFloor, serviceFloorName } from './support/floors/service-floor.ts'
import { type Verdict, verdictOn } from './support/floors/verdicts.ts'
import { watchOthers } from './support/undisturbed.ts'

const STEPS = ['first', 'unchanged', 'changed', 'changedBytes', 'restore'] as const
const HASH_NAMES: Record<Hash, string> = {
  'sha-256': "OpenSSL's SHA-256, which Node has too",
  'blake2b-256': "OpenSSL's BLAKE2b, which Node has too",
  pairs: 'SHA-256 of two blocks at a time, which Node does not have',
}
const usName = (kind: Warmth) => `gamekeeper, ${kind}`

interface Shape {
  trees: Record<string, BenchTree>
  rounds: number
  kinds: Warmth[]
  peers: Tool[]
}

const whole = (): Shape => ({ trees: wantedTrees(), rounds: ROUNDS, kinds: ['warm', 'cold'], peers: [restic] })

export async function run(shape: Shape = whole()): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'gamekeeper-floors-'))
  try {
    const program = buildProgram(folder)
    if (!program) {
      console.log("There is no C compiler, so no floor is measured: install Debian's packages gcc and libc6-dev.")
      return false
    }
    const held: boolean[] = []
    for (const [name, tree] of Object.entries(shape.trees)) held.push(await measureFloors(name, tree, program, shape))
    return held.every(Boolean)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Whether every bar is held that could be. */
async function measureFloors(name: string, tree: BenchTree, program: FloorProgram, shape: Shape): Promise<boolean> {
  const { rounds, kinds, peers } = shape
  console.log(`\n${name}: ${tree.what}`)
  const othersShare = watchOthers()
  let times: Record<string, Times> = {}
  const storedBytes = () => median(kinds.flatMap((kind) => times[usName(kind)]?.firstBytes ?? []))
  const floors = program.hashes.map((hash) => createFloor(program, hash, storedBytes))
  const shares = {
    first: (treeBytes: number) => Math.min(1, storedBytes() / treeBytes),
    changed: () => sectorShare(floors),
  }
  const inNode = kinds.flatMap((kind) => [createNodeFloor(kind, shares), createServiceFloor(kind)])
  const measured = await measureTree(tree, rounds, (soFar) => {
    times = soFar
    return [...kinds.map((kind) => ours(kind, tree)), ...peers, ...floors, ...inNode, formatFloor]
  })
  const bounds = mediansOf(Object.fromEntries(floors.map((floor) => [floor.name, floor.bounds])))
  const verdicts = program.hashes.flatMap((hash) => {
    console.log(`\n${name}, ${HASH_NAMES[hash]}`)
    const [least, bound] = [measured[floorName(hash)], bounds[floorName(hash)]]
    return sayFloors(tree.bars, kinds, { measured, least, bound })
  })
  sayFormat(measured)
  sayService(measured, kinds)
  sayChanges(floors, measured.restic?.changedBytes)
  // A bound is processor time, which others hardly lengthen, and what restic took is not.
  const percent = (othersShare() * 100).toFixed(0)
  console.log(
    `others used ${percent} % of the processors meanwhile: with more than a few, what could be had seems more than it is`,
  )
  return verdicts.every((verdict) => verdict === 'holds' || verdict === 'cannot be had')
}

/** Of the blocks of 64 KiB in which something has changed, how much the sectors are that have. */
function sectorShare(floors: readonly Floor[]): number {
  const stored = floors.flatMap((floor) => floor.changes).at(-1)?.stored ?? []
  return (stored[0] ?? 1) / (stored.at(-1) || 1)
}

interface Compared {
  measured: Medians
  least: Medians[string] | undefined
  bound: Medians[string] | undefined
}

function sayFloors(bars: Bars, kinds: readonly Warmth[], compared: Compared): Verdict[] {
  const { measured, least = {}, bound = {} } = compared
  const verdicts: Verdict[] = []
  const rows = STEPS.map((line) => {
    const isLessBetter = line === 'changedBytes'
    const peer = measured.restic?.[line]
    const toPeer = (value = Number.NaN) => (isLessBetter ? value / (peer ?? Number.NaN) : (peer ?? Number.NaN) / value)
    // Nobody adds less than what has changed, so the least program adds that.
    const limits = { least: toPeer(least[line]), bound: toPeer(bound[line] ?? least[line]) }
    const us = kinds.map((kind) => measured[usName(kind)]?.[line])
    const inNode = kinds.map((kind) => measured[nodeFloorName(kind)]?.[line])
    const bar = bars[line]
    const said = us.map((value, index) => {
      if (bar === undefined || peer === undefined) return 'no bar'
      const node = inNode[index] === undefined ? {} : { leastInNode: toPeer(inNode[index]) }
      const asked = measured[FORMAT_FLOOR]?.[line]
      const own = asked === undefined ? {} : { ourFormat: toPeer(asked) }
      const served = measured[serviceFloorName(kinds[index] ?? 'warm')]?.[line]
      const service = served === undefined ? {} : { leastService: toPeer(served) }
      const verdict = verdictOn({
        ours: toPeer(value),
        ...limits,
        ...node,
        ...own,
        ...service,
        bar,
        sign: isLessBetter ? '<=' : '>=',
      })
      verdicts.push(verdict)
      return verdict
    })
    const seconds = [...us, peer, ...inNode, least[line], bound[line]].map((value) => format(line, value))
    const ratios = [...us.map(toPeer), ...inNode.map(toPeer), limits.least, limits.bound].map((ratio) =>
      Number.isNaN(ratio) ? '' : ratio.toFixed(2),
    )
    return [TITLES[line], ...seconds, ...ratios, bar ?? '', ...said]
  })
  const nodes = kinds.map((kind) => `least in Node, ${kind}`)
  const who = [...kinds, 'restic', ...nodes, 'least program', 'bound']
  const ratios = [...kinds, ...nodes, 'least', 'bound'].map((name) => `restic/${name}`)
  table([['', ...who, ...ratios, 'bar', ...kinds], ...rows])
  return verdicts
}

function sayFormat({ [FORMAT_FLOOR]: ours, restic: peer }: Medians): void {
  const seconds = ours?.first ?? Number.NaN
  const ratio = peer?.first === undefined ? '' : `, restic to that ${(peer.first / seconds).toFixed(2)}`
  console.log(`\nfirst backup, what our format asks of every byte and nothing else: ${seconds.toFixed(3)} s${ratio}`)
}

function sayService(measured: Medians, kinds: readonly Warmth[]): void {
  const peer = measured.restic?.unchanged
  for (const kind of kinds) {
    const seconds = measured[serviceFloorName(kind)]?.unchanged ?? Number.NaN
    const ratio = peer === undefined ? '' : `, restic to that ${(peer / seconds).toFixed(1)}`
    console.log(`nothing changed, the least service in Node, ${kind}: ${seconds.toFixed(3)} s${ratio}`)
  }
}

/** What changed, and what would have to be stored of it: the sectors alone, or whole blocks of some size. */
function sayChanges(floors: readonly Floor[], peerBytes: number | undefined): void {
  const changes = floors.flatMap((floor) => floor.changes)
  const of = (value: (changed: Changed) => number) => median(changes.map(value))
  const mb = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`
  const [files, sectors] = [of((one) => one.files), of((one) => one.sectors)]
  const inFiles = mb(of((one) => one.fileBytes))
  console.log(`\nchanged: ${files} files of together ${inFiles}, ${sectors} sectors of 4 KiB, ${mb(sectors * 4096)}`)
  table([
    ['blocks of', 'stored, without zeros at the ends of sectors', "part of restic's"],
    ...BLOCK_KIB.map((kib, index) => {
      const bytes = of((one) => one.stored[index] ?? 0)
      return [`${kib} KiB`, mb(bytes), peerBytes === undefined ? '' : (bytes / peerBytes).toFixed(3)]
    }),
  ])
}
