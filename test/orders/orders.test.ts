// The short form of `npm run faults -- orders`: the orders that have gone wrong once, and a sample of all the others.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { onBothEngines } from '../support/engines.ts'
import { FAULTS, type Fault, isExpected, ordersOf } from './faults.ts'
import { allPairs, type Finding, rehearse, tell, tryOrder } from './pairs.ts'
import { sampler } from './run.ts'
import { openStage, type Stage } from './stage.ts'

const SEED = 11
const PAIRS = 4
const ORDERS_OF_A_PAIR = 2

onBothEngines('two operations at once', (engine) => {
  let stage: Stage
  before(async () => {
    stage = await openStage(engine)
  })
  after(() => stage.stop())

  async function findingsOf(fault: Fault): Promise<Finding[]> {
    const rehearsal = await rehearse(stage, fault.pair, fault.atDisk)
    const orders = ordersOf(fault, rehearsal)
    assert.ok(orders.length > 0, `nobody comes by ${fault.before}`)
    const findings: Finding[] = []
    for (const order of orders) {
      const finding = await tryOrder(stage, fault.pair, order, rehearsal)
      if (finding) findings.push(finding)
    }
    return findings
  }

  for (const fault of FAULTS.filter(({ engines }) => engines.includes(engine))) {
    test(`${fault.isMended ? 'mended' : 'known, and to be mended'}: ${fault.what}`, async () => {
      const findings = await findingsOf(fault)
      const story = findings.map(tell).join('\n')
      if (fault.isMended) return assert.equal(story, '')
      const shows = findings.some(({ faults }) => faults.some((text) => fault.sign.test(text)))
      assert.ok(shows, `it no longer shows: say in test/orders/faults.ts that it is mended\n${story}`)
    })
  }

  test('in a sample of all orders of all pairs, each ends as it would one after the other', async () => {
    const sample = sampler(SEED)
    for (const pair of sample(allPairs(), PAIRS)) {
      const rehearsal = await rehearse(stage, pair)
      for (const order of sample(rehearsal.schedules, ORDERS_OF_A_PAIR)) {
        const finding = await tryOrder(stage, pair, order, rehearsal)
        if (finding && !isExpected(finding, engine)) assert.fail(tell(finding))
      }
    }
  })
})
