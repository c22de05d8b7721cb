import type { Handlers } from '#app.ts'
import type {
  Artifact as ArtifactMessage,
  ArtifactsService,
  ArtifactVersion as ArtifactVersionMessage,
} from '#gen/pinfold/libraries/v2/artifacts_pb.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import {
  type Artifact,
  type ArtifactVersion,
  artifactFields,
  type Ecosystem,
  versionFields,
} from './artifacts.model.ts'
import * as service from './artifacts.service.ts'
import { ecosystemNumber, ecosystemOf } from './ecosystems.ts'

const rules = { fields: artifactFields, defaultOrder: 'name' }
const versionRules = { fields: versionFields, defaultOrder: 'version desc' }

export const artifacts: Handlers<typeof ArtifactsService> = {
  async listArtifacts(call, request) {
    const { query, cudaVersion = '', remediated } = request
    const ecosystems = ecosystemsOf(request.ecosystems)
    const filter = { ecosystems, query, cudaVersion, remediated }
    const listed = await service.listArtifacts(call, readList(call, request, rules, filter))
    return listResponse('pinfold.platform.libraries.v2.ListArtifactsResponse', 'artifacts', listed, toMessage, request)
  },

  async listArtifactVersions(call, request) {
    const { artifactId: artifact } = request
    const listed = await service.listArtifactVersions(call, readList(call, request, versionRules, { artifact }))
    return listResponse(
      'pinfold.platform.libraries.v2.ListArtifactVersionsResponse',
      'artifactVersions',
      listed,
      toVersionMessage,
      request,
    )
  },

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

/** Each once, in the order given; none is left to the service to refuse. */
function ecosystemsOf(numbers: readonly number[]): Ecosystem[] {
  return [...new Set(numbers)].map((number) => ecosystemOf(number, 'ecosystems'))
}

function toMessage({ ecosystem, createTime, updateTime, ...artifact }: Artifact): ArtifactMessage {
  return {
    $typeName: 'pinfold.platform.libraries.v2.Artifact',
    ...artifact,
    ecosystem: ecosystemNumber(ecosystem),
    createTime: timestamp(createTime),
    updateTime: timestamp(updateTime),
  }
}

function toVersionMessage(artifact: ArtifactVersion): ArtifactVersionMessage {
  const { uid, name, version, description, sizeBytes, createTime, updateTime } = artifact
  return {
    $typeName: 'pinfold.platform.libraries.v2.ArtifactVersion',
    uid,
    name,
    version,
    description,
    sizeBytes: BigInt(sizeBytes),
    createTime: timestamp(createTime),
    updateTime: timestamp(updateTime),
  }
}
