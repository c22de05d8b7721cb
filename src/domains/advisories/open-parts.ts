import { createRemembered } from '#lib/caches/remembered.ts'
import type { AdvisoriesParts } from './parts.ts'

export function openAdvisories(): AdvisoriesParts {
  return { searchTotals: createRemembered(1000) }
}
