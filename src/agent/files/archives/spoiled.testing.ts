// Archives that no honest tool writes, made byte by byte.

/** A header with any bytes for a name, and its checksum right. */
export function tarHeader(fields: { name?: string; size?: number; type: string; target?: string }): Buffer {
  const { name = 'header', size = 0, type, target = '' } = fields
  const block = Buffer.alloc(512)
  block.write(name, 0, 100, 'utf8')
  block.write('0000644\0', 100, 'latin1')
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124, 'latin1')
  block.write('00000000000\0', 136, 'latin1')
  block.write(' '.repeat(8), 148, 'latin1')
  block.write(type, 156, 'latin1')
  block.write(target, 157, 100, 'utf8')
  block.write('ustar\x0000', 257, 'latin1')
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return block
}

export function tarMember(fields: Parameters<typeof tarHeader>[0], body: Uint8Array = Buffer.alloc(0)): Buffer {
  const padding = Buffer.alloc((512 - (body.length % 512)) % 512)
  return Buffer.concat([tarHeader({ ...fields, size: body.length }), body, padding])
}

export const TAR_END = Buffer.alloc(1024)

/** `<length> <key>=<value>\n`, the length counting itself. */
export function paxRecord(key: string, value: string | Uint8Array): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value), Buffer.from('\n')])
  let length = rest.length + 1
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return Buffer.concat([Buffer.from(String(length)), rest])
}

export interface ZipPart {
  name: string | Buffer
  data?: string
  /** What the directory says, where that is not so. */
  says?: { offset?: number; compressed?: number; size?: number }
}

/** Stored, without checksums for what is not there. `order` is the one of the directory, by index. */
export function zipOf(
  parts: ZipPart[],
  options: { order?: number[]; crcOf(data: Buffer): number; count?: number },
): Buffer {
  const pieces: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const { name, data = '', says = {} } of parts) {
    const [nameBytes, bytes] = [Buffer.from(name), Buffer.from(data)]
    const crc = options.crcOf(bytes)
    const local = Buffer.alloc(30)
    local.writeUInt32LE(0x04034b50, 0)
    local.writeUInt32LE(crc, 14)
    local.writeUInt32LE(bytes.length, 18)
    local.writeUInt32LE(bytes.length, 22)
    local.writeUInt16LE(nameBytes.length, 26)
    const record = Buffer.alloc(46)
    record.writeUInt32LE(0x02014b50, 0)
    record.writeUInt32LE(crc, 16)
    record.writeUInt32LE(says.compressed ?? bytes.length, 20)
    record.writeUInt32LE(says.size ?? bytes.length, 24)
    record.writeUInt16LE(nameBytes.length, 28)
    record.writeUInt32LE(says.offset ?? offset, 42)
    central.push(Buffer.concat([record, nameBytes]))
    pieces.push(local, nameBytes, bytes)
    offset += 30 + nameBytes.length + bytes.length
  }
  const directory = Buffer.concat(
    (options.order ?? central.map((_, index) => index)).map((index) => central[index] as Buffer),
  )
  return Buffer.concat([...pieces, directory, zipEnd(options.count ?? parts.length, directory.length, offset)])
}

export function zipEnd(count: number, length: number, start: number): Buffer {
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(count & 0xffff, 8)
  end.writeUInt16LE(count & 0xffff, 10)
  end.writeUInt32LE(length, 12)
  end.writeUInt32LE(start, 16)
  return end
}
