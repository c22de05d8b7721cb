import { createLruCache } from '#lib/caches/lru-cache.ts'
import type { AdvisoriesParts } from './parts.ts'

export function openAdvisories(): AdvisoriesParts {
  return { searchTotals: createLruCache(1000) }
}
