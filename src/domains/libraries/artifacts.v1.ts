// Libraries in version 1 of the API. The enum has more ecosystems than are supported, pages have no order, and answers contain
// complete versions.
import type { Handlers } from '#app.ts'
import {
  type Artifact as ArtifactMessage,
  ArtifactSchema,
  type Artifacts,
  type ArtifactVersion as ArtifactVersionMessage,
  ArtifactVersionSchema,
  Ecosystem as EcosystemNumber,
  SourceType,
} from '#gen/pinfold/libraries/v1/artifacts_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { invalid } from '#lib/errors.ts'
import { readPage } from '#lib/lists/paging.ts'
import { type Artifact, type ArtifactVersion, artifactFields, type Ecosystem } from './artifacts.model.ts'
import * as service from './artifacts.service.ts'

const times = { createdAt: 'createTime', updatedAt: 'updateTime' } as const
const toArtifact = messageOf(ArtifactSchema, { id: 'uid', ...times })
const toVersion = messageOf(ArtifactVersionSchema, times)
const rules = { fields: artifactFields, defaultOrder: 'name' }
const numbers: Record<Ecosystem, EcosystemNumber> = { java: EcosystemNumber.JAVA, python: EcosystemNumber.PYTHON }

export const artifactsV1: Handlers<typeof Artifacts> = {
  async list(call, request) {
    const { query, cudaVersion, remediated, includeUpstream, skip } = request
    const ecosystems = offeredOf(readEcosystems(request.ecosystems))
    const filter = { ecosystems, query, cudaVersion, remediated }
    const page = readPage(call, { ...request, orderBy: '' }, rules, [request.ecosystems, filter, includeUpstream])
    const nothing = { items: [], total: 0, next: '' }
    const asksForNothing = ecosystems.length === 0 && request.ecosystems.length > 0
    const listed = asksForNothing ? nothing : await service.listArtifacts(call, { uidp: undefined, page, filter })
    return {
      $typeName: 'pinfold.platform.libraries.ArtifactList',
      items: listed.items.map(toMessage),
      nextPageToken: listed.next,
      totalArtifacts: listed.total,
      skipped: skip,
    }
  },

  async listVersions(call, { id }) {
    const versions = await service.listAllVersions(call, id)
    const items = versions.map((one) => toVersionMessage(id, one))
    return { $typeName: 'pinfold.platform.libraries.ArtifactVersionList', items }
  },

  async getArtifactCount(call, request) {
    const ecosystems = readEcosystems(request.ecosystems)
    const offered = offeredOf(ecosystems)
    // If the request names no ecosystem, the service returns an error.
    const counted = ecosystems.length > 0 && offered.length === 0 ? [] : await service.countArtifacts(call, offered)
    const totals = new Map(counted.map(([ecosystem, total]) => [numbers[ecosystem], total]))
    return {
      $typeName: 'pinfold.platform.libraries.GetArtifactCountResponse',
      counts: ecosystems.map((ecosystem) => ({
        $typeName: 'pinfold.platform.libraries.GetArtifactCountResponse.Count',
        ecosystem,
        totalArtifacts: totals.get(ecosystem) ?? 0,
      })),
    }
  },
}

/** Ecosystems in the request without duplicates, in the given order. */
function readEcosystems(ecosystems: readonly EcosystemNumber[]): EcosystemNumber[] {
  const known: readonly number[] = Object.values(EcosystemNumber)
  for (const one of ecosystems) {
    if (one !== EcosystemNumber.UNKNOWN && known.includes(one)) continue
    throw invalid({ field: 'ecosystems', description: 'must be known values of Ecosystem except UNKNOWN' })
  }
  return [...new Set(ecosystems)]
}

/** Supported ecosystems in the request. */
function offeredOf(ecosystems: readonly EcosystemNumber[]): Ecosystem[] {
  const names = Object.keys(numbers) as Ecosystem[]
  return ecosystems.flatMap((number) => names.filter((name) => numbers[name] === number))
}

function toMessage(artifact: Artifact): ArtifactMessage {
  return toArtifact({ ...artifact, ecosystem: numbers[artifact.ecosystem] })
}

/**
 * Some fields are empty: the publication time at the registry of the ecosystem is unknown, and there is no search for malware.
 */
function toVersionMessage(artifact: string, version: ArtifactVersion): ArtifactVersionMessage {
  const { version: text, remediated } = version
  return toVersion({
    ...version,
    id: `${artifact}:${text}:${remediated ? 'internal_remediated' : 'internal'}`,
    sourceType: remediated ? SourceType.INTERNAL_REMEDIATED : SourceType.INTERNAL,
    malwareScanned: false,
    malwareMalicious: false,
  })
}
