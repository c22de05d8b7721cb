import type { Handlers } from '#app.ts'
import { type Upstream as UpstreamMessage, UpstreamsService } from '#gen/pinfold/control/registry/v1/upstreams_pb.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import { pathLimits, storedPatternProblem } from './tag-patterns.ts'
import { anUpstream, type Upstream, type UpstreamInput, upstreamFields } from './upstreams.model.ts'
import * as service from './upstreams.service.ts'

const { uid, name, createTime, updateTime } = upstreamFields
const rules = { fields: { uid, name, createTime, updateTime }, defaultOrder: 'uid' }

export const upstreams: Handlers<typeof UpstreamsService> = {
  async listUpstreams(call, request) {
    const listed = await service.listUpstreams(call, readList(call, request, rules, { name: request.name }))
    const response = 'pinfold.control.registry.v1.ListUpstreamsResponse'
    return listResponse(response, 'upstreams', listed, toMessage, request)
  },

  async getUpstream(call, { uid }) {
    return withProblem(await service.getUpstream(call, uid))
  },

  async createUpstream(call, { parent, upstream }) {
    return withProblem(await service.createUpstream(call, parent, fromMessage(upstream)))
  },

  async updateUpstream(call, { upstream, updateMask }) {
    const patch = { paths: updateMask?.paths ?? [], value: fromMessage(upstream) }
    return withProblem(await service.updateUpstream(call, upstream?.uid ?? '', patch))
  },

  async deleteUpstream(call, { uid }) {
    await service.deleteUpstream(call, uid)
    return empty
  },
}

export const upstreamEvents: readonly EventBody[] = [
  eventBody(UpstreamsService.method.createUpstream, anUpstream, toMessage),
  eventBody(UpstreamsService.method.updateUpstream, anUpstream, toMessage),
  deletionBody(UpstreamsService.method.deleteUpstream),
]

function fromMessage(upstream: UpstreamMessage | undefined): UpstreamInput {
  if (!upstream) throw invalid({ field: 'upstream', description: 'is required' })
  const { name, url, prefix, username, password, allow, requestsPerSecond, makeRepos } = upstream
  return { name, url, prefix, username, password, allow, requestsPerSecond, makeRepos }
}

/** Not in lists, where reading the patterns of all upstreams would take long. */
function withProblem(upstream: Upstream): UpstreamMessage {
  return { ...toMessage(upstream), problem: storedPatternProblem('allow', upstream.allow, pathLimits) }
}

function toMessage({ createTime, updateTime, ...upstream }: Upstream): UpstreamMessage {
  return {
    $typeName: 'pinfold.control.registry.v1.Upstream',
    ...upstream,
    password: '',
    problem: '',
    createTime: timestamp(createTime),
    updateTime: timestamp(updateTime),
  }
}
