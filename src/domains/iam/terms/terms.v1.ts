// Version 1 of terms. Lists the documents that were accepted for a group and for the groups above it, without pages.
import type { Handlers } from '#app.ts'
import { AcceptTermsResponseSchema, Terms, TermsDocumentStatusSchema } from '#gen/pinfold/iam/v1/terms_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { acceptedTerms } from './terms.model.ts'
import * as service from './terms.service.ts'

const toMessage = messageOf(TermsDocumentStatusSchema, { acceptedAt: 'createTime' })
const toAccepted = messageOf(AcceptTermsResponseSchema)

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
