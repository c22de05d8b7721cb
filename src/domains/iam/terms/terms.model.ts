import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** A legal document named in the settings. */
export type TermsDocument = { id: string; label: string; url: string }

/** One document, accepted for a group and everything below it. */
export type TermsAcceptance = {
  /** Group and document. Only used for the order of pages, and not shown. */
  uid: string
  docId: string
  acceptedBy: string
  orgUid: string
  createTime: string
}

/** Documents accepted for a group in one call. */
export type Accepted = { group: string; documentIds: string[] }
export const acceptedTerms = kindOf<Accepted>('accepted')
export const termsAcceptanceType = 'iam.pinfold.dev/TermsAcceptance'

export const termsFields = {
  docId: { column: 'doc_id', sort: true },
  createTime: { column: 'create_time', sort: true },
} as const satisfies Fields<TermsAcceptance>
