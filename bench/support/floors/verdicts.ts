// How a bar stands to what we take, and to the least that anybody could.

export interface Standing {
  /** How many times the peer takes what we take; or, where less is better, what part of the peer's we have. */
  ours: number
  /** The same of the least program. */
  least: number
  /** Of the least program in Node, where it does this. */
  leastInNode?: number
  /** And of what nobody gets below. */
  bound: number
  bar: number
  sign: '>=' | '<='
}

export type Verdict =
  | 'holds'
  | 'could be had, and is not'
  | 'beyond the least program in Node'
  | 'beyond the least program'
  | 'cannot be had'

export function verdictOn({ ours, least, leastInNode = least, bound, bar, sign }: Standing): Verdict {
  const isHeldBy = (value: number) => (sign === '>=' ? value >= bar : value <= bar)
  if (isHeldBy(ours)) return 'holds'
  if (!isHeldBy(bound)) return 'cannot be had'
  if (!isHeldBy(least)) return 'beyond the least program'
  return isHeldBy(leastInNode) ? 'could be had, and is not' : 'beyond the least program in Node'
}
