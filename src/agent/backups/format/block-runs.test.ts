import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import {
  asIfWhole,
  blockCountOf,
  contentOf,
  eachWrite,
  namesOf,
  piecesBetween,
  visitNeeded,
  type Write,
} from './block-runs.ts'
import { BLOCK_BYTES, ID_BYTES, SECTOR_BYTES } from './format.ts'
import { BLOCK_SECTORS, countSectors, isChanged, type Piece, sectorRuns, wholeWhere } from './patched.ts'

type Block = { kind: 'zeros' } | { kind: 'name'; id: number } | { kind: 'patched'; id: number; sectors: number }

const id = fc.integer({ min: 1, max: 200 })
const block: fc.Arbitrary<Block> = fc.oneof(
  fc.record({ kind: fc.constant('zeros' as const) }),
  fc.record({ kind: fc.constant('name' as const), id }),
  fc.record({ kind: fc.constant('patched' as const), id, sectors: fc.integer({ min: 1, max: 0xfffe }) }),
)
const blocks = fc.array(block, { minLength: 1, maxLength: 40 })

const name = (number: number) => Uint8Array.from({ length: ID_BYTES }, (_, at) => (at === 0 ? number : at))
const base = (number: number) => name(number).fill(201, 1)
const patch = (number: number) => name(number).fill(202, 1)
const NOTHING = new Uint8Array(ID_BYTES)

function listed(list: readonly Block[]): Uint8Array {
  const ids = Buffer.concat(list.map((one) => (one.kind === 'zeros' ? NOTHING : name(one.id))))
  return contentOf(
    ids,
    (at) => list[at]?.kind === 'zeros',
    (at) => {
      const one = list[at]
      return one?.kind === 'patched' ? { sectors: one.sectors, base: base(one.id), patch: patch(one.id) } : undefined
    },
  )
}

/** Which byte stands at each sector of the file: what it is of, and where in that. */
function sectorsOf(list: readonly Block[], sizeBytes: number): string[] {
  return Array.from({ length: Math.ceil(sizeBytes / SECTOR_BYTES) }, (_, at) => {
    const one = list[Math.floor(at / BLOCK_SECTORS)]
    const sector = at % BLOCK_SECTORS
    if (one?.kind === 'name') return `name ${one.id} ${sector}`
    if (one?.kind !== 'patched') return 'zeros'
    const before = countSectors(one.sectors & ((1 << sector) - 1))
    return isChanged(one.sectors, sector) ? `patch ${one.id} ${before}` : `base ${one.id} ${sector}`
  })
}

function described(content: Uint8Array, { idAt, from }: Pick<Piece, 'idAt' | 'from'>, sector: number): string {
  if (idAt < 0) return 'zeros'
  const kind = { 201: 'base', 202: 'patch' }[content[idAt + 1] ?? 0] ?? 'name'
  return `${kind} ${content[idAt]} ${from / SECTOR_BYTES + sector}`
}

it('a content lists for each place in a file which block, and what of it, stands there', () => {
  fc.assert(
    fc.property(blocks, fc.nat({ max: BLOCK_BYTES - 1 }), (chosen, missing) => {
      // The last block may be shorter, and then is not patched.
      const list = [...chosen, { kind: 'name' as const, id: 7 }]
      const sizeBytes = list.length * BLOCK_BYTES - missing
      const content = listed(list)
      const found: string[] = []
      let end = 0
      for (const piece of piecesBetween({ content, sizeBytes }, 0, sizeBytes)) {
        assert.equal(piece.offset, end)
        end += piece.length
        assert.ok(piece.from + piece.length <= piece.blockBytes)
        for (let sector = 0; sector * SECTOR_BYTES < piece.length; sector++)
          found.push(described(content, piece, sector))
      }
      assert.equal(end, sizeBytes)
      assert.deepEqual(found, sectorsOf(list, sizeBytes))
      assert.equal(blockCountOf(content), list.length)
    }),
  )
})

it('what is written of blocks, and then over them, makes the file', () => {
  fc.assert(
    fc.property(blocks, fc.nat({ max: BLOCK_BYTES - 1 }), (chosen, missing) => {
      const list = [...chosen, { kind: 'name' as const, id: 7 }]
      const sizeBytes = list.length * BLOCK_BYTES - missing
      const content = listed(list)
      const file = new Array(Math.ceil(sizeBytes / SECTOR_BYTES)).fill('zeros')
      const writes: Write[] = []
      eachWrite({ content, sizeBytes }, (write) => void writes.push(write))
      const isPatch = ({ sectors }: Write) => sectors !== 0
      for (const { idAt, offset, length } of writes.filter((write) => !isPatch(write)).reverse())
        for (let sector = 0; sector * SECTOR_BYTES < length; sector++)
          file[offset / SECTOR_BYTES + sector] = described(content, { idAt, from: 0 }, sector)
      for (const { idAt, offset, length, sectors } of writes.filter(isPatch).reverse()) {
        const runs = [...sectorRuns(sectors)]
        assert.equal(
          runs.reduce((sum, run) => sum + run.length, 0),
          length,
        )
        for (const { from, start, length: bytes } of runs)
          for (let sector = 0; sector * SECTOR_BYTES < bytes; sector++)
            file[(offset + start) / SECTOR_BYTES + sector] = described(content, { idAt, from }, sector)
      }
      assert.deepEqual(file, sectorsOf(list, sizeBytes))
    }),
  )
})

it('of a range, just the pieces that have bytes in it are given', () => {
  fc.assert(
    fc.property(blocks, fc.nat(), fc.nat(), (list, one, other) => {
      const sizeBytes = list.length * BLOCK_BYTES
      const [start = 0, end = 0] = [one % (sizeBytes + 1), other % (sizeBytes + 1)].sort((a, b) => a - b)
      const content = listed(list)
      const all = [...piecesBetween({ content, sizeBytes }, 0, sizeBytes)]
      const within = all.filter(({ offset, length }) => offset < end && offset + length > start)
      if (start < end) assert.deepEqual([...piecesBetween({ content, sizeBytes }, start, end)], within)
    }),
  )
})

it('a store must have what a patched block is made of, and not the block itself', () => {
  fc.assert(
    fc.property(blocks, (list) => {
      const content = listed(list)
      const needed: string[] = []
      visitNeeded(content, (idAt) => needed.push(Buffer.from(content.subarray(idAt, idAt + ID_BYTES)).toString('hex')))
      const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
      const expected = list.flatMap((one) => {
        if (one.kind === 'zeros') return []
        return one.kind === 'name' ? [hex(name(one.id))] : [hex(base(one.id)), hex(patch(one.id))]
      })
      assert.deepEqual(needed, expected)
    }),
  )
})

it('a patched block is had as a whole where what it is made of is not all there and itself is', () => {
  fc.assert(
    fc.property(
      id,
      fc.integer({ min: 1, max: 0xfffe }),
      fc.boolean(),
      fc.boolean(),
      fc.boolean(),
      (number, sectors, ...there) => {
        const content = listed([{ kind: 'patched', id: number, sectors }])
        const ids = [name(number), base(number), patch(number)]
        const held = ids.filter((_, at) => there[at])
        const holds = (bytes: Uint8Array, idAt: number) =>
          held.some((one) => Buffer.from(one).equals(bytes.subarray(idAt, idAt + ID_BYTES)))
        const isWhole = wholeWhere(holds, content)
        const [isNamed, isBase, isPatch] = there
        const expected = isNamed && !(isBase && isPatch) ? 1 : 2
        let needed = 0
        visitNeeded(content, () => void needed++, isWhole)
        const writes: Write[] = []
        eachWrite({ content, sizeBytes: BLOCK_BYTES }, (write) => void writes.push(write), isWhole)
        const pieces = [...piecesBetween({ content, sizeBytes: BLOCK_BYTES }, 0, BLOCK_BYTES, isWhole)]
        assert.deepEqual([needed, writes.length, Math.min(pieces.length, 2)], [expected, expected, expected])
      },
    ),
  )
})

it('two contents of the same bytes are the same as if whole, however their blocks are listed', () => {
  fc.assert(
    fc.property(blocks, (list) => {
      const whole = list.map((one): Block => (one.kind === 'patched' ? { kind: 'name', id: one.id } : one))
      assert.deepEqual(asIfWhole(listed(list)), listed(whole))
      assert.deepEqual(namesOf(listed(list)), namesOf(listed(whole)))
    }),
  )
})
