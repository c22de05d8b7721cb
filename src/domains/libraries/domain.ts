import type { Domain } from '#domain.ts'
import { ArtifactControlService } from '#gen/pinfold/control/libraries/v1/artifacts_pb.ts'
import { Artifacts } from '#gen/pinfold/libraries/v1/artifacts_pb.ts'
import { ArtifactsService } from '#gen/pinfold/libraries/v2/artifacts_pb.ts'
import { artifactImports } from './artifact-imports.control.ts'
import { artifactsV1 } from './artifacts.v1.ts'
import { artifacts } from './artifacts.v2.ts'
import { resources } from './resources.ts'

export const libraries: Domain = {
  services: [
    { desc: ArtifactsService, handlers: artifacts },
    { desc: Artifacts, handlers: artifactsV1 },
    { desc: ArtifactControlService, handlers: artifactImports },
  ],
  eventBodies: [],
  resources,
  jobs: [],
}
