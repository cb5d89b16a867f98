// Addresses of many files for another thread: mostly as one text, which is cloned faster than many.
export type Address = string | Buffer | null

/** No path has a NUL in it. */
export type PackedAddresses = string | Address[]

export function packAddresses(addresses: Address[]): PackedAddresses {
  return addresses.some((address) => address instanceof Buffer) ? addresses : addresses.join('\0')
}

export function unpackAddresses(packed: PackedAddresses): Address[] {
  return typeof packed === 'string' ? packed.split('\0').map((text) => (text === '' ? null : text)) : packed
}
