// A zip of empty files with long names, made without a library: little on the disk, much to read.
const NAME_LENGTH = 60

export function emptyZip(entries: number): Buffer {
  const locals: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (let index = 0; index < entries; index++) {
    const name = Buffer.from(`${String(index).padStart(8, '0')}${'n'.repeat(NAME_LENGTH - 8)}`)
    const local = Buffer.alloc(30)
    local.writeUInt32LE(0x04034b50, 0)
    local.writeUInt16LE(20, 4)
    local.writeUInt16LE(name.length, 26)
    const entry = Buffer.alloc(46)
    entry.writeUInt32LE(0x02014b50, 0)
    entry.writeUInt16LE(20, 4)
    entry.writeUInt16LE(20, 6)
    entry.writeUInt16LE(name.length, 28)
    entry.writeUInt32LE(offset, 42)
    locals.push(local, name)
    central.push(entry, name)
    offset += local.length + name.length
  }
  const directory = Buffer.concat(central)
  return Buffer.concat([...locals, directory, ...endOf(entries, directory.length, offset)])
}

/** In the form for many entries, which the short one points to. */
function endOf(entries: number, directoryBytes: number, offset: number): Buffer[] {
  const end64 = Buffer.alloc(56)
  end64.writeUInt32LE(0x06064b50, 0)
  end64.writeBigUInt64LE(44n, 4)
  end64.writeUInt16LE(45, 12)
  end64.writeUInt16LE(45, 14)
  for (const at of [24, 32]) end64.writeBigUInt64LE(BigInt(entries), at)
  end64.writeBigUInt64LE(BigInt(directoryBytes), 40)
  end64.writeBigUInt64LE(BigInt(offset), 48)
  const locator = Buffer.alloc(20)
  locator.writeUInt32LE(0x07064b50, 0)
  locator.writeBigUInt64LE(BigInt(offset + directoryBytes), 8)
  locator.writeUInt32LE(1, 16)
  const end = Buffer.alloc(22, 0xff)
  end.writeUInt32LE(0x06054b50, 0)
  for (const at of [4, 6, 20]) end.writeUInt16LE(0, at)
  return [end64, locator, end]
}
