import type { Reader } from '#db/sql.ts'
import { AppError } from '#lib/errors.ts'
import { lineage } from '#lib/uid.ts'
import type { TermsDocument } from './terms.model.ts'
import { acceptedDocuments } from './terms.store.ts'

/** Keeps methods that the settings name from organisations that have not accepted every document. */
export type TermsGate = {
  /** Whether the settings name the method, by its full name. */
  guards(method: string): boolean
  /** Throws FAILED_PRECONDITION with what is missing at a place. What is accepted above it counts. */
  requireAccepted(place: string): Promise<void>
}

export function createTermsGate(
  reader: Reader,
  documents: readonly TermsDocument[],
  methods: readonly string[],
): TermsGate {
  const guarded = new Set(methods)
  return {
    guards: (method) => guarded.has(method),
    async requireAccepted(place) {
      const accepted = await acceptedDocuments(reader, lineage(place))
      const missing = documents.filter(({ id }) => !accepted.has(id))
      if (missing.length === 0) return
      throw new AppError('FAILED_PRECONDITION', 'the organisation has to accept documents before it may do this', {
        reason: 'TERMS_NOT_ACCEPTED',
        details: [{ type: 'TermsNotAccepted', missing }],
      })
    },
  }
}
