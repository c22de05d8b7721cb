import type { Handlers } from '#app.ts'
import type { TermsAcceptance as AcceptanceMessage, TermsService } from '#gen/pinfold/iam/v2/terms_pb.ts'
import { readPage } from '#lib/paging.ts'
import { timestamp } from '#lib/timestamp.ts'
import { type TermsAcceptance, termsFields } from './terms.model.ts'
import * as service from './terms.service.ts'

export const terms: Handlers<typeof TermsService> = {
  async acceptTerms(call, { group, documentIds }) {
    return {
      $typeName: 'pinfold.platform.iam.v2.AcceptTermsResponse',
      group,
      documentIds: await service.acceptTerms(call, group, documentIds),
    }
  },

  async listTermsAcceptances(call, request) {
    const { group } = request
    const page = readPage(call, request, { fields: termsFields, defaultOrder: 'create_time' }, [group])
    const listed = await service.listTermsAcceptances(call, group, page)
    return {
      $typeName: 'pinfold.platform.iam.v2.ListTermsAcceptancesResponse',
      termsAcceptances: listed.items.map(toMessage),
      nextPageToken: listed.next,
      totalCount: BigInt(listed.total),
      skipped: request.skip,
    }
  },
}

function toMessage({ docId, acceptedBy, orgUid, createTime }: TermsAcceptance): AcceptanceMessage {
  return {
    $typeName: 'pinfold.platform.iam.v2.TermsAcceptance',
    docId,
    acceptedBy,
    orgUid,
    createTime: timestamp(createTime),
  }
}
