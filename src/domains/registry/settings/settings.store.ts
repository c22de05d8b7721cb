import { type Reader, sql, type Tx } from '#db/sql.ts'
import type { RegistrySettings } from './settings.model.ts'

export async function findSettings(reader: Reader, org: string): Promise<RegistrySettings | undefined> {
  const row = await reader.get<{ uniqueTags: number; eolGracePeriod: number }>(sql`
    SELECT unique_tags AS "uniqueTags", eol_grace_period AS "eolGracePeriod"
      FROM registry_settings WHERE org_uid = ${org}`)
  return row && { uniqueTags: row.uniqueTags === 1, eolGracePeriod: row.eolGracePeriod === 1 }
}

export async function saveSettings(tx: Tx, org: string, settings: RegistrySettings): Promise<void> {
  await tx.run(sql`
    INSERT INTO registry_settings (org_uid, unique_tags, eol_grace_period)
    VALUES (${org}, ${Number(settings.uniqueTags)}, ${Number(settings.eolGracePeriod)})
        ON CONFLICT (org_uid) DO UPDATE SET unique_tags = excluded.unique_tags,
           eol_grace_period = excluded.eol_grace_period`)
}
