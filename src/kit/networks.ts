/** Whom an address stands for: with IPv6 a household has 2^64 of them, so the network counts. */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address
  const [left = '', right] = address.split('::')
  const groups = left === '' ? [] : left.split(':')
  const tail = right ? right.split(':').length : 0
  if (right !== undefined) while (groups.length + tail < 8) groups.push('0')
  return groups.slice(0, 4).join(':')
}
