import { readdirSync } from 'node:fs'

/** The ids of all migrations, which are the names of their files: commands need no more, and loading each takes time. */
export function migrationIds(): string[] {
  const files = readdirSync(new URL('migrations', import.meta.url))
  return files.flatMap((file) => /^(\d{4}-.+)\.ts$/.exec(file)?.[1] ?? []).sort()
}

export type Phase = 'whole' | 'expand' | 'backfill' | 'contract'

/** Phase of a migration, from its id. A build that does not have the migration uses it to decide if it can run beside it. */
export function phaseOf(id: string): Phase {
  return (/^\d{4}-(expand|backfill|contract)-/.exec(id)?.[1] ?? 'whole') as Phase
}
