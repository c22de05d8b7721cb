import type { Handlers } from '#app.ts'
import {
  type TermsAcceptance as AcceptanceMessage,
  type AcceptTermsResponse,
  TermsService,
} from '#gen/pinfold/iam/v2/terms_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { type Accepted, acceptedTerms, type TermsAcceptance, termsFields } from './terms.model.ts'
import * as service from './terms.service.ts'

const rules = { fields: termsFields, defaultOrder: 'create_time' }

export const terms: Handlers<typeof TermsService> = {
  async acceptTerms(call, { group, documentIds }) {
    return toAccepted({ group, documentIds: await service.acceptTerms(call, group, documentIds) })
  },

  async listTermsAcceptances(call, request) {
    const { group } = request
    const listed = await service.listTermsAcceptances(call, readList(call, request, rules, { group }))
    return listResponse(
      'pinfold.platform.iam.v2.ListTermsAcceptancesResponse',
      'termsAcceptances',
      listed,
      toMessage,
      request,
    )
  },
}

export const termsEvents: readonly EventBody[] = [eventBody(TermsService.method.acceptTerms, acceptedTerms, toAccepted)]

function toMessage({ docId, acceptedBy, orgUid, createTime }: TermsAcceptance): AcceptanceMessage {
  return {
    $typeName: 'pinfold.platform.iam.v2.TermsAcceptance',
    docId,
    acceptedBy,
    orgUid,
    createTime: timestamp(createTime),
  }
}

function toAccepted(accepted: Accepted): AcceptTermsResponse {
  return { $typeName: 'pinfold.platform.iam.v2.AcceptTermsResponse', ...accepted }
}
