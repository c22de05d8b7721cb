import { sql, type Tx } from '#db/sql.ts'
import type { ScimSettings } from './scim-settings.model.ts'

export async function saveSettings(tx: Tx, provider: string, settings: ScimSettings): Promise<void> {
  await tx.run(sql`UPDATE identity_providers SET scim = ${JSON.stringify(settings)} WHERE uid = ${provider}`)
}
