import type { Handlers } from '#app.ts'
import { AcceptTermsResponseSchema, TermsAcceptanceSchema, TermsService } from '#gen/pinfold/iam/v2/terms_pb.ts'
import { listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { acceptedTerms, termsFields } from './terms.model.ts'
import * as service from './terms.service.ts'

const { method } = TermsService
const rules = { fields: termsFields, defaultOrder: 'create_time' }
const toMessage = messageOf(TermsAcceptanceSchema)
const toAccepted = messageOf(AcceptTermsResponseSchema)

export const terms: Handlers<typeof TermsService> = {
  async acceptTerms(call, { group, documentIds }) {
    return toAccepted({ group, documentIds: await service.acceptTerms(call, group, documentIds) })
  },

  listTermsAcceptances: listing(
    method.listTermsAcceptances,
    rules,
    ({ group }) => ({ group }),
    service.listTermsAcceptances,
    toMessage,
  ),
}

export const termsEvents: readonly EventBody[] = [eventBody(method.acceptTerms, acceptedTerms, toAccepted)]
