import type { Handlers } from '#app.ts'
import type { ArtifactControlService, ImportedArtifact } from '#gen/pinfold/control/libraries/v1/artifacts_pb.ts'
import { type Instant, toIso } from '#lib/timestamp.ts'
import * as service from './artifact-imports.service.ts'
import type { ArtifactFacts } from './artifacts.model.ts'
import { ecosystemOf } from './ecosystems.ts'

export const artifactImports: Handlers<typeof ArtifactControlService> = {
  async importArtifacts(call, { artifacts, run }) {
    const counts = await service.importArtifacts(call, artifacts.map(fromMessage), run)
    return { $typeName: 'pinfold.control.libraries.v1.ImportArtifactsResponse', ...counts }
  },

  async getArtifactImportRun(call, { id }) {
    const after = await service.getRun(call, id)
    return { $typeName: 'pinfold.control.libraries.v1.ArtifactImportRun', id, after }
  },
}

function fromMessage({ ecosystem, name, versions }: ImportedArtifact, i: number): ArtifactFacts {
  return {
    ecosystem: ecosystemOf(ecosystem, `artifacts[${i}].ecosystem`),
    name,
    versions: versions.map(({ version, description, sizeBytes, remediated, releaseTime, changeTime }) => ({
      version,
      description,
      sizeBytes: Number(sizeBytes),
      remediated,
      releaseTime: isoOf(releaseTime),
      changeTime: isoOf(changeTime),
    })),
  }
}

function isoOf(time: Instant | undefined): string {
  return time ? toIso(time) : ''
}
