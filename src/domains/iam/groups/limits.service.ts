// What an organisation may have at most, for whoever adds something to it.
import type { Work } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { limitExceeded } from '#lib/errors.ts'
import { findResourceLimits } from './groups.store.ts'
import { type QuotaLimits, type QuotaName, quotaNames, quotas } from './quotas.model.ts'

export type { QuotaLimits }

type Config = Work['app']['config']

/** The limits in force. `reader` is the transaction that adds something, so that a limit set meanwhile counts. */
export async function limitsOf(
  reader: Reader,
  { app: { config } }: { app: { config: Config } },
  organization: string,
): Promise<QuotaLimits> {
  const own = await findResourceLimits(reader, organization)
  return Object.fromEntries(quotaNames.map((name) => [name, limitIn(config, own, name)])) as QuotaLimits
}

/** The organisation's own limit, or else that of the settings. */
export function limitIn(config: Config, own: Record<string, number>, name: QuotaName): number {
  const limit = own[name] ?? defaultsOf(config)[name]
  return limit === 0 ? Number.POSITIVE_INFINITY : limit
}

function defaultsOf(config: Config): QuotaLimits {
  return {
    bytes: config.quotaBytes,
    repositories: config.quotaRepositories,
    groups: config.quotaGroups,
    uploads: config.quotaUploads,
    upload_pieces: config.quotaUploadPieces,
    subscriptions: config.quotaSubscriptions,
    sink_subscriptions: config.quotaSinkSubscriptions,
    pending_deliveries: config.quotaPendingDeliveries,
  }
}

/** Throws RESOURCE_EXHAUSTED when `added` more than what is used would exceed the limit. */
export function requireRoom(limits: QuotaLimits, name: QuotaName, used: number, added = 1): void {
  const limit = limits[name]
  if (used + added > limit) throw limitExceeded(name, quotas[name], used, limit)
}
