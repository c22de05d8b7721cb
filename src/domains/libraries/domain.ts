import type { Service } from '#app.ts'
import { ArtifactsService } from '#gen/pinfold/libraries/v2/artifacts_pb.ts'

export const services: readonly Service[] = [{ desc: ArtifactsService, handlers: {} }]
