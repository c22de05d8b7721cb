import { kindOf } from '#lib/events/event-body.ts'

/**
 * Resources of an organization that have a limit, each with its name in errors. The organization's own limits have these keys.
 */
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

/** Limits of an organization. `Infinity` stands for no limit. */
export type QuotaLimits = Record<QuotaName, number>

/**
 * Quota of an organization. `own` is true if the limit was set for the organization. `used` is absent if the quota applies to
 * each upload or each sink.
 */
export type Quota = { name: QuotaName; limit: number; own: boolean; used?: number }

export type Quotas = { organization: string; quotas: Quota[] }
export const someQuotas = kindOf<Quotas>('quotas')

/** Change of a limit: 0 for no limit, `undefined` for the limit of the settings. */
export type QuotaChange = { name: string; limit: number | undefined }

/** Highest limit. The contract shows the limits of a group as int32. */
export const maxCount = 2 ** 31 - 1
