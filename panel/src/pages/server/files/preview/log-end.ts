import { client } from '../../../../api/client.ts'

const END_BYTES = 256 * 1024

export interface LogEnd {
  text: string
  sizeBytes: number
  isWhole: boolean
}

export async function readLogEnd(serverId: string, path: string, signal: AbortSignal): Promise<LogEnd> {
  const whole = await client.files.read(serverId, path, { signal })
  const sizeBytes = whole.sizeBytes ?? 0
  const isWhole = sizeBytes <= END_BYTES
  if (!isWhole) await whole.bytes.cancel()
  const range = { range: `bytes=${sizeBytes - END_BYTES}-` }
  const { bytes } = isWhole ? whole : await client.files.read(serverId, path, { signal, headers: range })
  const text = plainText(await new Response(bytes).text())
  // A range begins anywhere, also in the middle of a line.
  return { text: isWhole ? text : text.slice(text.indexOf('\n') + 1), sizeBytes, isWhole }
}

/** Without colours and whatever else a terminal would act upon. */
export function plainText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  return text.replace(/\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, '')
}
