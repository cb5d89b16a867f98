// How a bar stands to what we take, and to the least that anybody could.

export interface Standing {
  /** How many times the peer takes what we take; or, where less is better, what part of the peer's we have. */
  ours: number
  /** The same of the least program. */
  least: number
  /** Of the least program in Node, where it does this. */
  leastInNode?: number
  /** Of the least service in Node, where it does this. */
  leastService?: number
  /** Of what our format asks of every byte, where that is measured. */
  ourFormat?: number
  /** And of what nobody gets below. */
  bound: number
  bar: number
  sign: '>=' | '<='
}

export type Verdict =
  | 'holds'
  | 'could be had, and is not'
  | 'beyond what our format asks'
  | 'beyond the least service in Node'
  | 'beyond the least program in Node'
  | 'beyond the least program'
  | 'cannot be had'

export function verdictOn({
  ours,
  least,
  leastInNode = least,
  leastService = leastInNode,
  ourFormat = leastService,
  bound,
  bar,
  sign,
}: Standing): Verdict {
  const isHeldBy = (value: number) => (sign === '>=' ? value >= bar : value <= bar)
  if (isHeldBy(ours)) return 'holds'
  if (!isHeldBy(bound)) return 'cannot be had'
  if (!isHeldBy(least)) return 'beyond the least program'
  if (!isHeldBy(leastInNode)) return 'beyond the least program in Node'
  if (!isHeldBy(leastService)) return 'beyond the least service in Node'
  return isHeldBy(ourFormat) ? 'could be had, and is not' : 'beyond what our format asks'
}
