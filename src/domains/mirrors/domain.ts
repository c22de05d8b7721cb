import type { Domain } from '#domain.ts'
import { FollowsService } from '#gen/pinfold/control/registry/v1/follows_pb.ts'
import { UpstreamsService } from '#gen/pinfold/control/registry/v1/upstreams_pb.ts'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { copyRepos } from './copies/syncs.job.ts'
import { syncsV1 } from './copies/syncs.v1.ts'
import { fetchFollowed } from './follows/fetches.job.ts'
import { followEvents, follows } from './follows/follows.control.ts'
import { followUpstreams } from './follows/follows.job.ts'
import { requestHistories } from './follows/histories.job.ts'
import { upstreamEvents, upstreams } from './follows/upstreams.control.ts'
import { mirrorsHooks } from './mirrors.hooks.ts'
import { openMirrors } from './open-parts.ts'
import { resources } from './resources.ts'

export const mirrors: Domain = {
  parts: openMirrors,
  services: [
    { desc: UpstreamsService, handlers: upstreams },
    { desc: FollowsService, handlers: follows },
    { desc: Registry, handlers: syncsV1 },
  ],
  eventBodies: [...upstreamEvents, ...followEvents],
  resources,
  hooks: mirrorsHooks,
  jobs: [copyRepos, followUpstreams, fetchFollowed, requestHistories],
}
