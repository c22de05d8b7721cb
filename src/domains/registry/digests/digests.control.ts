import type { Handlers } from '#app.ts'
import type { DigestsService } from '#gen/pinfold/control/registry/v1/digests_pb.ts'
import { readPage } from '#lib/lists/paging.ts'
import { timestamp } from '#lib/timestamp.ts'
import { referrerFields } from './digests.model.ts'
import { listReferrers, pullsOf } from './digests.service.ts'

const rules = { fields: referrerFields, defaultOrder: 'digest' }

export const digests: Handlers<typeof DigestsService> = {
  async listReferrers(call, { repoUid, digest, pageSize, pageToken }) {
    const page = readPage(call, { pageSize, pageToken, orderBy: '', skip: 0 }, rules, [repoUid, digest])
    const { items, next } = await listReferrers(call, repoUid, digest, page)
    return {
      $typeName: 'pinfold.control.registry.v1.ListReferrersResponse',
      referrers: items.map((one) => ({
        $typeName: 'pinfold.control.registry.v1.Referrer',
        ...{ digest: one.digest, mediaType: one.mediaType, artifactType: one.artifactType, size: BigInt(one.size) },
      })),
      nextPageToken: next,
    }
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
}
