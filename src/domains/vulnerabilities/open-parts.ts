import { createRemembered } from '#lib/caches/remembered.ts'
import type { VulnerabilitiesParts } from './parts.ts'

export function openVulnerabilities(): VulnerabilitiesParts {
  return { searchTotals: createRemembered(1000) }
}
