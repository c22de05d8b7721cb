import type { Reader } from '#db/sql.ts'
import { AppError } from '#lib/errors.ts'
import { lineage } from '#lib/uid.ts'
import type { TermsDocument } from './terms.model.ts'
import { acceptedDocuments } from './terms.store.ts'

/** Checks that an organization has accepted all documents, before methods that the settings name. */
export type TermsGate = {
  /**
   * Throws FAILED_PRECONDITION with the missing documents if the settings name one of the methods and the group has not accepted
   * all documents. Acceptance for a group above is sufficient. Returns undefined instead of a promise if the settings name none
   * of the methods.
   */
  check(scope: string, ...methods: readonly string[]): Promise<void> | undefined
}

export function createTermsGate(
  reader: Reader,
  documents: readonly TermsDocument[],
  methods: readonly string[],
): TermsGate {
  const guarded = new Set(methods)
  const requireAccepted = async (scope: string): Promise<void> => {
    const accepted = await acceptedDocuments(reader, lineage(scope))
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
    check: (scope, ...methods) => (methods.some((method) => guarded.has(method)) ? requireAccepted(scope) : undefined),
  }
}
