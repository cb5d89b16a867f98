// Times as headers have them, in whole seconds (RFC 9110, section 5.6.7).

const DATE = /^[A-Z][a-z]{2,8}, \d\d[ -][A-Z][a-z]{2}[ -](\d\d|\d{4}) \d\d:\d\d:\d\d GMT$/
/** As C's `asctime` writes it, without a zone, and meant to be in UTC. */
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/

export function httpDate(date: Date): string {
  return date.toUTCString()
}

/** In milliseconds. Of what is no date, NaN: nothing is before or after that. */
export function timeOf(header: string | undefined): number {
  if (header === undefined) return Number.NaN
  if (ASCTIME.test(header)) return Date.parse(`${header} GMT`)
  return DATE.test(header) ? Date.parse(header) : Number.NaN
}
