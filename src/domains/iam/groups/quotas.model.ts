import { kindOf } from '#lib/events/event-body.ts'

/** Quotas of an organization, by key, with their names in error messages. `resourceLimits` of a group has the same keys. */
export const quotas = {
  bytes: 'stored bytes',
  repositories: 'repositories',
  groups: 'folders',
  uploads: 'open uploads',
  upload_pieces: 'chunks in one upload',
  subscriptions: 'subscriptions',
  sink_subscriptions: 'subscriptions to one endpoint URL',
  pending_deliveries: 'pending deliveries',
} as const
export type QuotaName = keyof typeof quotas
export const quotaNames = Object.keys(quotas) as QuotaName[]

/** Limit of each quota. `Infinity` is no limit. */
export type QuotaLimits = Record<QuotaName, number>

/**
 * Quota of an organization. `own` is true if the limit was set for this organization. `used` is missing if the limit applies to
 * each upload or to each sink.
 */
export type Quota = { name: QuotaName; limit: number; own: boolean; used?: number }

export type Quotas = { organization: string; quotas: Quota[] }
export const someQuotas = kindOf<Quotas>('quotas')

/** Change of one limit. 0 is no limit, and `undefined` resets to the limit in the settings. */
export type QuotaChange = { name: string; limit: number | undefined }

/** Highest limit, since limits of a group are int32 in the contract. */
export const maxCount = 2 ** 31 - 1
