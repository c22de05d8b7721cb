import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** Legal document that the settings name. */
export type TermsDocument = { id: string; label: string; url: string }

/** Acceptance of one document, for a group and everything below it. */
export type TermsAcceptance = {
  /** Sort key made of group and document. Not shown to clients. */
  uid: string
  docId: string
  acceptedBy: string
  orgUid: string
  createTime: string
}

/** Documents that one call has accepted for a group. */
export type Accepted = { group: string; documentIds: string[] }
export const acceptedTerms = kindOf<Accepted>('accepted')
export const termsAcceptanceType = 'iam.pinfold.dev/TermsAcceptance'

export const termsFields = {
  docId: { column: 'doc_id', sort: true },
  createTime: { column: 'create_time', sort: true },
} as const satisfies Fields<TermsAcceptance>
