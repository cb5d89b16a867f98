// Frames of a pack that hold no block. No byte of a pack may change unseen, so theirs are checked too.
import type { FrameRow } from './pack-table.ts'
import { CODEC_FILLER, CODEC_SPANS } from './seal.ts'
import { decodeSpans } from './spans.ts'

export const isUnnamed = ({ codec }: FrameRow) => codec === CODEC_FILLER || codec === CODEC_SPANS

/** What is wrong with such a frame, if anything. */
export function faultOfUnnamed(
  packId: string,
  { codec, storedLength }: FrameRow,
  stored: Uint8Array,
): string | undefined {
  if (stored.length !== storedLength) return 'the pack ends too early'
  if (codec === CODEC_SPANS) return decodeSpans(packId, stored) ? undefined : 'the list of its spans is damaged'
  return stored.every((byte) => byte === 0) ? undefined : 'what should be zeros is not'
}
