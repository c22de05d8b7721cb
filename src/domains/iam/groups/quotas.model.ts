import { kindOf } from '#lib/events/event-body.ts'

/** What organisations may have only so much of, each with how an error says it. Limits of their own have these keys. */
export const quotas = {
  bytes: 'bytes stored',
  repositories: 'repositories',
  groups: 'folders',
  uploads: 'open uploads',
  upload_pieces: 'pieces in one upload',
  subscriptions: 'subscriptions',
  sink_subscriptions: 'subscriptions to one sink',
  pending_deliveries: 'pending deliveries',
} as const
export type QuotaName = keyof typeof quotas
export const quotaNames = Object.keys(quotas) as QuotaName[]

/** The most of each that an organisation may have; `Infinity` where there is no limit. */
export type QuotaLimits = Record<QuotaName, number>

/** `own` is the organisation's own limit. `used` is absent where the quota is about each upload or each sink. */
export type Quota = { name: QuotaName; limit: number; own: boolean; used?: number }

export type Quotas = { organization: string; quotas: Quota[] }
export const someQuotas = kindOf<Quotas>('quotas')

/** A change to a limit: 0 for none, `undefined` for that of the settings. */
export type QuotaChange = { name: string; limit: number | undefined }

/** The contract has an int32 for the limits that a group shows. */
export const maxCount = 2 ** 31 - 1
