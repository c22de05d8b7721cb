import { readdirSync } from 'node:fs'

/** The ids of all migrations, which are the names of their files: commands need no more, and loading each takes time. */
export function migrationIds(): string[] {
  const files = readdirSync(new URL('migrations', import.meta.url))
  return files.flatMap((file) => /^(\d{4}-.+)\.ts$/.exec(file)?.[1] ?? []).sort()
}
