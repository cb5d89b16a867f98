// For tests on either side of the line between control and agent.
export { SHIPPED_TEMPLATES } from '../../src/agent/games/templates/index.ts'
