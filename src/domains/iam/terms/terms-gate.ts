import type { Reader } from '#db/sql.ts'
import { AppError } from '#lib/errors.ts'
import { lineage } from '#lib/uid.ts'
import type { TermsDocument } from './terms.model.ts'
import { acceptedDocuments } from './terms.store.ts'

/** Keeps methods that the settings name from organisations that have not accepted every document. */
export type TermsGate = {
  /**
   * Throws FAILED_PRECONDITION with what is missing at a place when the settings name one of the methods, which have their
   * full names. What is accepted above the place counts. Answers at once when there is nothing to check.
   */
  check(place: string, ...methods: readonly string[]): Promise<void> | undefined
}

export function createTermsGate(
  reader: Reader,
  documents: readonly TermsDocument[],
  methods: readonly string[],
): TermsGate {
  const guarded = new Set(methods)
  const requireAccepted = async (place: string): Promise<void> => {
    const accepted = await acceptedDocuments(reader, lineage(place))
    const missing = documents.filter(({ id }) => !accepted.has(id))
    if (missing.length === 0) return
    throw new AppError('FAILED_PRECONDITION', 'the organisation has to accept documents before it may do this', {
      reason: 'TERMS_NOT_ACCEPTED',
      details: [{ type: 'TermsNotAccepted', missing }],
    })
  }
  return {
    check: (place, ...methods) => (methods.some((method) => guarded.has(method)) ? requireAccepted(place) : undefined),
  }
}
