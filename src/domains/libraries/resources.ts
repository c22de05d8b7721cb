import type { Resource } from '#lib/resource.ts'
import { artifactType } from './artifacts.model.ts'

export const resources: readonly Resource[] = [
  { type: artifactType, table: 'artifacts', kinds: ['artifacts'], uid: 'none', groupDeletion: 'apart' },
]
