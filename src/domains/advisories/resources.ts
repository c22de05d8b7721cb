import type { Resource } from '#lib/resource.ts'
import { advisoryType } from './advisories/advisories.model.ts'
import { vulnerabilityType } from './metadata/vulnerabilities.model.ts'

export const resources: readonly Resource[] = [
  { type: advisoryType, table: 'advisories', kinds: ['advisories'], uid: 'node', groupDeletion: 'blocks' },
  {
    type: vulnerabilityType,
    table: 'vulnerabilities',
    kinds: ['vulnerabilities'],
    uid: 'none',
    groupDeletion: 'apart',
  },
]
