import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { requireGroup } from '#domains/iam/groups/groups.service.ts'
import { invalid } from '#lib/errors.ts'
import { rootOf } from '#lib/uid.ts'
import type { RegistrySettings } from './settings.model.ts'
import * as store from './settings.store.ts'

/** Settings of an organization. Both are false by default. */
export async function getSettings(call: Call, org: string): Promise<RegistrySettings> {
  await requireOrganization(call.app.db, org)
  return (await store.findSettings(call.app.db, org)) ?? { uniqueTags: false, eolGracePeriod: false }
}

export async function replaceSettings(call: Call, org: string, settings: RegistrySettings): Promise<void> {
  await call.app.db.tx(async (tx) => {
    await requireOrganization(tx, org)
    await store.saveSettings(tx, org, settings)
  })
  call.log.info('registry settings replaced', { org, ...settings })
}

async function requireOrganization(reader: Reader, uid: string): Promise<void> {
  if (uid !== rootOf(uid)) throw invalid({ field: 'registry_id', description: 'must be the uid of an organization' })
  await requireGroup(reader, uid)
}
