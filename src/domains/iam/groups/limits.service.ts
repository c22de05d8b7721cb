// Limits of organizations, checked by services that add resources.
import type { Work } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { limitExceeded } from '#lib/errors.ts'
import { findResourceLimits } from './groups.store.ts'
import { type QuotaLimits, type QuotaName, quotaNames, quotas } from './quotas.model.ts'

export type { QuotaLimits }

type Config = Work['app']['config']

/**
 * Current limits of an organization. `reader` should be the transaction that adds the resource, so that a limit that was just set
 * applies.
 */
export async function limitsOf(
  reader: Reader,
  { app: { config } }: { app: { config: Config } },
  organization: string,
): Promise<QuotaLimits> {
  const own = await findResourceLimits(reader, organization)
  return Object.fromEntries(quotaNames.map((name) => [name, limitIn(config, own, name)])) as QuotaLimits
}

/** Limit of the organization. If none was set for it, the limit in the settings. Infinity for no limit. */
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

/** Throws RESOURCE_EXHAUSTED if `used` plus `added` is more than the limit. */
export function requireCapacity(limits: QuotaLimits, name: QuotaName, used: number, added = 1): void {
  const limit = limits[name]
  if (used + added > limit) throw limitExceeded(name, quotas[name], used, limit)
}
