import type { Handlers } from '#app.ts'
import type { DigestsService, UnpulledDigest } from '#gen/pinfold/control/registry/v1/digests_pb.ts'
import { Promise_Reason } from '#gen/pinfold/control/registry/v1/retention_pb.ts'
import { readPage } from '#lib/lists/paging.ts'
import { timestamp } from '#lib/timestamp.ts'
import { noEnd } from '../retention/retention.model.ts'
import { referrerFields } from './digests.model.ts'
import { listReferrers, pullsOf } from './digests.service.ts'
import { listUnpulled, readWanted, type Unpulled } from './unpulled.service.ts'

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

  async listUnpulledDigests(call, { repoUid, pageSize, pageToken, ...asked }) {
    const wanted = readWanted(asked)
    const filters = [repoUid, wanted.days, ...wanted.except]
    const page = readPage(call, { pageSize, pageToken, orderBy: '', skip: 0 }, rules, filters)
    const { items, next } = await listUnpulled(call, repoUid, page, wanted)
    const $typeName = 'pinfold.control.registry.v1.ListUnpulledDigestsResponse'
    return { $typeName, digests: items.map(unpulledMessage), nextPageToken: next }
  },
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
