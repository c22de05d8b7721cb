import { listAssets } from '#lib/files/assets.ts'

/** IDs in a bundle, which has no files of migrations. The build replaces the name (`scripts/bundle`). */
declare const bundledMigrations: string[] | undefined

/** IDs of all migrations, which are their file names. Commands need only the IDs, and loading each migration takes time. */
export function migrationIds(): string[] {
  if (typeof bundledMigrations !== 'undefined') return bundledMigrations
  const files = listAssets('src/db/migrations/')
  return files.flatMap((file) => /^(\d{4}-.+)\.ts$/.exec(file)?.[1] ?? []).sort()
}

export type Phase = 'whole' | 'expand' | 'backfill' | 'contract'

/**
 * Phase of a migration, from its ID. A build without the migration uses the phase to find out whether it can still use the
 * database.
 */
export function phaseOf(id: string): Phase {
  return (/^\d{4}-(expand|backfill|contract)-/.exec(id)?.[1] ?? 'whole') as Phase
}
