import type { Handlers } from '#app.ts'
import { ArtifactSchema, ArtifactsService, ArtifactVersionSchema } from '#gen/pinfold/libraries/v2/artifacts_pb.ts'
import { listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { artifactFields, type Ecosystem, versionFields } from './artifacts.model.ts'
import * as service from './artifacts.service.ts'
import { ecosystemNumber, ecosystemOf } from './ecosystems.ts'

const { method } = ArtifactsService
const toArtifact = messageOf(ArtifactSchema)
const rules = { fields: artifactFields, defaultOrder: 'name' }
const versionRules = { fields: versionFields, defaultOrder: 'version desc' }

export const artifacts: Handlers<typeof ArtifactsService> = {
  listArtifacts: listing(
    method.listArtifacts,
    rules,
    ({ query, cudaVersion = '', remediated, ecosystems }) => {
      return { ecosystems: ecosystemsOf(ecosystems), query, cudaVersion, remediated }
    },
    service.listArtifacts,
    ({ ecosystem, ...artifact }) => toArtifact({ ...artifact, ecosystem: ecosystemNumber(ecosystem) }),
  ),

  listArtifactVersions: listing(
    method.listArtifactVersions,
    versionRules,
    ({ artifactId: artifact }) => ({ artifact }),
    service.listArtifactVersions,
    messageOf(ArtifactVersionSchema),
  ),

  async getArtifactCount(call, request) {
    const counts = await service.countArtifacts(call, ecosystemsOf(request.ecosystems))
    return {
      $typeName: 'pinfold.platform.libraries.v2.GetArtifactCountResponse',
      counts: counts.map(([ecosystem, total]) => ({
        $typeName: 'pinfold.platform.libraries.v2.GetArtifactCountResponse.EcosystemCount',
        ecosystem: ecosystemNumber(ecosystem),
        totalCount: BigInt(total),
      })),
    }
  },
}

/** Ecosystems in the request without duplicates, in the given order. The service returns an error for an empty list. */
function ecosystemsOf(numbers: readonly number[]): Ecosystem[] {
  return [...new Set(numbers)].map((number) => ecosystemOf(number, 'ecosystems'))
}
