import type { Handlers } from '#app.ts'
import type { DigestsService, Referrer, UnpulledDigest } from '#gen/pinfold/control/registry/v1/digests_pb.ts'
import { Promise_Reason } from '#gen/pinfold/control/registry/v1/retention_pb.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { readPage } from '#lib/lists/paging.ts'
import { timestamp } from '#lib/timestamp.ts'
import { noEnd } from '../retention/retention.model.ts'
import { digestFields, type ReferrerRow } from './digests.model.ts'
import { listReferrers, listUnpulled, pullsOf, readUnpulledQuery, type Unpulled } from './digests.service.ts'

const rules = { fields: digestFields, defaultOrder: 'digest' }

export const digests: Handlers<typeof DigestsService> = {
  async listReferrers(call, request) {
    const { repoUid, digest } = request
    const page = readPage(call, request, rules, [repoUid, digest])
    const listed = await listReferrers(call, repoUid, digest, page)
    const response = 'pinfold.control.registry.v1.ListReferrersResponse'
    return listResponse(response, 'referrers', listed, referrerMessage, request)
  },

  async getDigestPulls(call, { repoUid, digest }) {
    const { lastTime, pullers } = await pullsOf(call, repoUid, digest)
    return {
      $typeName: 'pinfold.control.registry.v1.DigestPulls',
      ...(lastTime !== '' && { lastTime: timestamp(lastTime) }),
      pullers: pullers.map((one) => ({
        $typeName: 'pinfold.control.registry.v1.DigestPuller',
        ...{ caller: one.caller, callerName: one.callerName, lastTime: timestamp(one.lastTime) },
        ...{ gets: BigInt(one.gets), checks: BigInt(one.checks) },
      })),
    }
  },

  async listUnpulledDigests(call, request) {
    const { repoUid } = request
    const wanted = readUnpulledQuery(request)
    const page = readPage(call, request, rules, [repoUid, wanted.days, ...wanted.except])
    const listed = await listUnpulled(call, repoUid, page, wanted)
    const response = 'pinfold.control.registry.v1.ListUnpulledDigestsResponse'
    return listResponse(response, 'digests', listed, unpulledMessage, request)
  },
}

function referrerMessage({ digest, mediaType, artifactType, size }: ReferrerRow): Referrer {
  return { $typeName: 'pinfold.control.registry.v1.Referrer', digest, mediaType, artifactType, size: BigInt(size) }
}

function unpulledMessage(one: Unpulled): UnpulledDigest {
  const { digest, mediaType, tags, lastPull, lastCheck, partOf, kept } = one
  return {
    $typeName: 'pinfold.control.registry.v1.UnpulledDigest',
    ...{ digest, mediaType, partOf, size: BigInt(one.size), tags: [...tags], createTime: timestamp(one.createTime) },
    ...(lastPull && { lastPullTime: timestamp(lastPull.time) }),
    ...{ lastPuller: lastPull?.caller ?? '', lastPullerName: lastPull?.callerName ?? '' },
    ...(lastCheck !== undefined && { lastCheckTime: timestamp(lastCheck) }),
    keptBy: kept ? Promise_Reason[kept.by] : Promise_Reason.REASON_UNSPECIFIED,
    ...(kept && kept.until !== '' && kept.until !== noEnd && { keptUntil: timestamp(kept.until) }),
    safe: partOf === '' && !kept,
  }
}
