import type { Domain } from '#domain.ts'
import { SearchService } from '#gen/pinfold/control/search/v1/search_pb.ts'
import { fillIndex } from './fill-index.job.ts'
import { indexNames } from './index-names.job.ts'
import { search as handlers } from './search.control.ts'

export const search: Domain = {
  services: [{ desc: SearchService, handlers }],
  eventBodies: [],
  resources: [],
  jobs: [fillIndex, indexNames],
}
