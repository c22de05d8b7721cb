// Version 1 of terms: what was accepted for a group and above it, in full.
import type { Handlers } from '#app.ts'
import { type AcceptTermsResponse, Terms, type TermsDocumentStatus } from '#gen/pinfold/iam/v1/terms_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { timestamp } from '#lib/timestamp.ts'
import { type Accepted, acceptedTerms, type TermsAcceptance } from './terms.model.ts'
import * as service from './terms.service.ts'

export const termsV1: Handlers<typeof Terms> = {
  async acceptTerms(call, { group, documentIds }) {
    return toAccepted({ group, documentIds: await service.acceptTerms(call, group, documentIds) })
  },

  async listAccepted(call, { group }) {
    const items = (await service.listAccepted(call, group)).map(toMessage)
    return { $typeName: 'pinfold.platform.iam.TermsList', items }
  },
}

export const termsEventsV1: readonly EventBody[] = [eventBody(Terms.method.acceptTerms, acceptedTerms, toAccepted)]

function toMessage({ docId, acceptedBy, createTime }: TermsAcceptance): TermsDocumentStatus {
  const acceptedAt = timestamp(createTime)
  return { $typeName: 'pinfold.platform.iam.TermsDocumentStatus', docId, acceptedBy, acceptedAt }
}

function toAccepted(accepted: Accepted): AcceptTermsResponse {
  return { $typeName: 'pinfold.platform.iam.AcceptTermsResponse', ...accepted }
}
