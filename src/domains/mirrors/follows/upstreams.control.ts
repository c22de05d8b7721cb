import type { Handlers } from '#app.ts'
import {
  type Upstream as UpstreamMessage,
  UpstreamSchema,
  UpstreamsService,
} from '#gen/pinfold/control/registry/v1/upstreams_pb.ts'
import { creating, deleting, getting, listing, updating } from '#lib/contract/handlers.ts'
import { contentOf, messageOf } from '#lib/contract/messages.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { pathLimits, storedPatternProblem } from './tag-patterns.ts'
import { toUpstreamResource, type Upstream, type UpstreamInput, upstreamFields } from './upstreams.model.ts'
import * as service from './upstreams.service.ts'

const { method } = UpstreamsService
const toUpstream = messageOf(UpstreamSchema)
const { uid, name, createTime, updateTime } = upstreamFields
const rules = { fields: { uid, name, createTime, updateTime }, defaultOrder: 'uid' }

export const upstreams: Handlers<typeof UpstreamsService> = {
  listUpstreams: listing(method.listUpstreams, rules, ({ name }) => ({ name }), service.listUpstreams, toMessage),
  getUpstream: getting(service.getUpstream, withProblem),
  createUpstream: creating(['parent', 'upstream'], fromMessage, service.createUpstream, withProblem),
  updateUpstream: updating('upstream', fromMessage, service.updateUpstream, withProblem),
  deleteUpstream: deleting('uid', service.deleteUpstream),
}

export const upstreamEvents: readonly EventBody[] = [
  eventBody(method.createUpstream, toUpstreamResource, toMessage),
  eventBody(method.updateUpstream, toUpstreamResource, toMessage),
  deletionBody(method.deleteUpstream),
]

const given = ['name', 'url', 'prefix', 'username', 'allow', 'requestsPerSecond', 'makeRepos'] as const

function fromMessage(upstream: UpstreamMessage | undefined): UpstreamInput {
  return { ...contentOf(upstream, 'upstream', ...given), password: upstream?.password ?? '' }
}

/**
 * Adds the problem of the path patterns to one upstream. Lists leave the problem out, since parsing the patterns of all upstreams
 * would take long.
 */
function withProblem(upstream: Upstream): UpstreamMessage {
  return { ...toMessage(upstream), problem: storedPatternProblem('allow', upstream.allow, pathLimits) }
}

function toMessage(upstream: Upstream): UpstreamMessage {
  return toUpstream({ ...upstream, problem: '' })
}
