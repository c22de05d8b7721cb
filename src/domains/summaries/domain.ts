import type { Domain } from '#domain.ts'
import { SummariesService } from '#gen/pinfold/control/summaries/v1/summaries_pb.ts'
import { summaries as handlers } from './summaries.control.ts'

export const summaries: Domain = {
  services: [{ desc: SummariesService, handlers }],
  eventBodies: [],
  resources: [],
  jobs: [],
}
