import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { asIfWhole, blockCountOf, contentOf, eachWrite, namesOf, piecesBetween, visitNeeded } from './block-runs.ts'
import { BLOCK_BYTES, ID_BYTES } from './format.ts'
import { BLOCK_SECTORS, countSectors, isOther, type Piece, SECTOR_BYTES } from './patched.ts'

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
    return isOther(one.sectors, sector) ? `patch ${one.id} ${before}` : `base ${one.id} ${sector}`
  })
}

function described(content: Uint8Array, { idAt, from }: Piece, sector: number): string {
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
      const writes: { piece: Piece; isPatch: boolean }[] = []
      eachWrite({ content, sizeBytes }, (piece, isPatch) => writes.push({ piece, isPatch }))
      for (const isLater of [false, true])
        for (const { piece } of writes.filter(({ isPatch }) => isPatch === isLater).reverse())
          for (let sector = 0; sector * SECTOR_BYTES < piece.length; sector++)
            file[piece.offset / SECTOR_BYTES + sector] = described(content, piece, sector)
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

it('two contents of the same bytes are the same as if whole, however their blocks are listed', () => {
  fc.assert(
    fc.property(blocks, (list) => {
      const whole = list.map((one): Block => (one.kind === 'patched' ? { kind: 'name', id: one.id } : one))
      assert.deepEqual(asIfWhole(listed(list)), listed(whole))
      assert.deepEqual(namesOf(listed(list)), namesOf(listed(whole)))
    }),
  )
})
