import type { Reader } from '#db/sql.ts'
import { AppError } from '#lib/errors.ts'
import { lineage } from '#lib/uid.ts'
import type { TermsDocument } from './terms.model.ts'
import { acceptedDocuments } from './terms.store.ts'

/** Refuses methods named in the settings for organizations that have not accepted all documents. */
export type TermsGate = {
  /**
   * Throws FAILED_PRECONDITION with the missing documents of a group, if the settings name one of the methods by its full name.
   * Documents accepted above the group count. Returns undefined at once if there is nothing to check.
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
    throw new AppError(
      'FAILED_PRECONDITION',
      'the organization has to accept the terms first; an owner can accept the documents that the details list',
      {
        reason: 'TERMS_NOT_ACCEPTED',
        details: [{ type: 'TermsNotAccepted', missing }],
      },
    )
  }
  return {
    check: (place, ...methods) => (methods.some((method) => guarded.has(method)) ? requireAccepted(place) : undefined),
  }
}
