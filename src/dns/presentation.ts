// Record data as text, as zone files and HTTP APIs write it: `0 5 25565 host.`, `"quoted \"text\""`.
import type { RecordData, RecordType } from './records.ts'
import { splitText } from './wire.ts'

export function formatData(type: RecordType, data: RecordData[RecordType]): string {
  switch (type) {
    case 'A':
    case 'AAAA':
      return (data as RecordData['A']).address
    case 'CNAME':
    case 'NS':
      return `${(data as RecordData['NS']).target}.`
    case 'SRV': {
      const { priority, weight, port, target } = data as RecordData['SRV']
      return `${priority} ${weight} ${port} ${target}.`
    }
    case 'TXT':
      return splitText((data as RecordData['TXT']).text)
        .map(quote)
        .join(' ')
    case 'SOA': {
      const { primary, contact, serial, refresh, retry, expire, negativeTtl } = data as RecordData['SOA']
      return `${primary}. ${contact}. ${serial} ${refresh} ${retry} ${expire} ${negativeTtl}`
    }
  }
}

export function parseData(type: RecordType, content: string): RecordData[RecordType] {
  const fields = content.trim().split(/\s+/)
  const text = (index: number) => fields[index] ?? ''
  const number = (index: number) => Number(text(index))
  switch (type) {
    case 'A':
    case 'AAAA':
      return { address: content.trim() }
    case 'CNAME':
    case 'NS':
      return { target: text(0) }
    case 'SRV':
      return { priority: number(0), weight: number(1), port: number(2), target: text(3) }
    case 'TXT':
      return { text: parseText(content) }
    case 'SOA': {
      const [serial, refresh, retry, expire, negativeTtl] = [number(2), number(3), number(4), number(5), number(6)]
      return { primary: text(0), contact: text(1), serial, refresh, retry, expire, negativeTtl }
    }
  }
}

function quote(bytes: Buffer): string {
  let quoted = '"'
  for (const byte of bytes) {
    if (byte === 0x22 || byte === 0x5c) quoted += `\\${String.fromCharCode(byte)}`
    else if (byte < 0x20 || byte > 0x7e) quoted += `\\${String(byte).padStart(3, '0')}`
    else quoted += String.fromCharCode(byte)
  }
  return `${quoted}"`
}

/** Strings, quoted or bare, with white space between them; `\"` and `\ddd` are escapes in both. */
function parseText(content: string): string {
  const strings = content.match(/"(?:\\[\s\S]|[^"\\])*"|(?:\\[\s\S]|[^\s"\\])+/g) ?? []
  const unquoted = strings.map((part) => (part.startsWith('"') ? part.slice(1, -1) : part))
  return Buffer.concat(unquoted.map(unescapeText)).toString()
}

function unescapeText(part: string): Buffer {
  const pieces = part.match(/\\\d{3}|\\[\s\S]|[^\\]+/g) ?? []
  return Buffer.concat(
    pieces.map((piece) => {
      if (!piece.startsWith('\\')) return Buffer.from(piece)
      return /^\\\d{3}$/.test(piece) ? Buffer.of(Number(piece.slice(1)) & 0xff) : Buffer.from(piece.slice(1))
    }),
  )
}
