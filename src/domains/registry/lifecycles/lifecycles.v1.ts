import type { Handlers } from '#app.ts'
import {
  type EolTag as EolTagMessage,
  EolTagSchema,
  type PackageVersion,
  PackageVersionSchema,
} from '#gen/pinfold/registry/v1/eol_tags_pb.ts'
import type { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { invalid } from '#lib/errors.ts'
import { readList } from '#lib/lists/lists.ts'
import { isUid } from '#lib/uid.ts'
import { shapes, tagFields } from '../tags/tags.model.ts'
import { graceStatuses, tagStatuses } from './end-of-life.model.ts'
import { type EolTag, listEolTags } from './eol-tags.service.ts'
import { graceMonths, type Release } from './lifecycles.model.ts'
import { linesOf } from './lifecycles.service.ts'
import { upstreamVersion } from './main-package.model.ts'

const toEolTag = messageOf(EolTagSchema)
const toVersion = messageOf(PackageVersionSchema, {
  version: 'cycle',
  legacyLts: 'ltsDate',
  eolBroken: 'broken',
  latestVersion: 'latest',
})
const rules = { fields: tagFields, defaultOrder: 'uid' }

export const lifecyclesV1: Handlers<typeof Registry> = {
  async listEolTags(call, { uidp, name, pageToken, pageSize, excludeDates, excludeEpochs }) {
    const { ancestorsOf: ancestors_of, descendantsOf: descendants_of, childrenOf: children_of } = uidp ?? {}
    for (const [member, uid] of Object.entries({ ancestors_of, descendants_of, children_of })) {
      if (uid && !isUid(uid)) throw invalid({ field: `uidp.${member}`, description: 'is not a uid' })
    }
    // Tags of signatures, attestations and SBOMs are left out, since they have no end of life of their own.
    const asked = (excludeDates ? 0 : shapes.dates) | (excludeEpochs ? 0 : shapes.epochs)
    const filter = { name, digest: '', updatedSince: '', asked }
    const request = { uidp, pageSize: Number(pageSize), pageToken, orderBy: '', skip: 0 }
    const { items, next } = await listEolTags(call, readList(call, request, rules, filter))
    const messages = items.map((one) => toMessage(one, call.now))
    return { $typeName: 'pinfold.platform.registry.EolTagList', items: messages, nextPageToken: next }
  },

  async getPackageVersionMetadata(call, { package: name }) {
    const { ended, alive, inUse, updateTime } = await linesOf(call, name)
    const toVersion = (one: Release) => versionOf(one, inUse.has(one.cycle), call.now)
    return {
      $typeName: 'pinfold.platform.registry.PackageVersionMetadata',
      eolVersions: ended.map(toVersion),
      versions: alive.map(toVersion),
      latestVersion: alive[0]?.cycle ?? '',
      lastUpdatedTimestamp: updateTime,
      gracePeriodMonths: graceMonths,
    }
  },
}

function toMessage({ tag, main, release, standing }: EolTag, now: string): EolTagMessage {
  const { tagStatus, graceStatus, expiry } = standing
  // The version is unknown if the package is not found in the image.
  const bare = main && main.version !== '' ? bareVersion(main.version) : undefined
  return toEolTag({
    id: tag.uid,
    name: tag.name,
    mainPackageName: main?.name ?? '',
    mainPackageVersion: release ? versionOf(release, true, now) : bare,
    tagStatus: tagStatuses[tagStatus],
    graceStatus: graceStatuses[graceStatus],
    gracePeriodExpiryDate: expiry,
  })
}

function versionOf(release: Release, exists: boolean, now: string): PackageVersion {
  return toVersion({ ...release, exists, lts: release.lts && release.ltsDate <= now.slice(0, 10) })
}

function bareVersion(version: string): PackageVersion {
  const none = { cycle: upstreamVersion(version) || version, releaseDate: '', eolDate: '', ended: false, latest: '' }
  return versionOf({ ...none, lts: false, ltsDate: '', broken: false, fips: false }, true, '')
}
