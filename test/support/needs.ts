// Suites that need a tool are skipped, with the reason, where it is missing; under CI they run and fail instead.
import { missingTools, type ToolName } from '../../scripts/tools.ts'

/** The option for `test` or `suite`: `test(name, needs('powerdns'), …)`. */
export function needs(...tools: ToolName[]): { skip?: string } {
  const missing = missingTools().filter((tool) => tools.includes(tool))
  if (missing.length === 0 || process.env.CI) return {}
  return { skip: `${missing.join(', ')} not installed` }
}
