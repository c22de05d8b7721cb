import type { Handlers } from '#app.ts'
import {
  type AdvisoriesService,
  type Advisory as AdvisoryMessage,
  EventTypeFilter,
  type ListAdvisoriesRequest,
  ReviewState,
  type Severity,
} from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { invalid } from '#lib/errors.ts'
import { snakeCase } from '#lib/fields.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { advisoryFields } from './advisories.model.ts'
import * as service from './advisories.service.ts'
import { toEventMessage } from './advisory-events.v2.ts'
import { type AdvisoryFilter, facets } from './advisory-terms.model.ts'

const rules = { fields: advisoryFields, defaultOrder: 'uid' }

export const advisories: Handlers<typeof AdvisoriesService> = {
  async getAdvisory(call, { uid }) {
    return toMessage(await service.getAdvisory(call, uid))
  },

  async listAdvisories(call, request) {
    const listed = await service.listAdvisories(call, readList(call, request, rules, filterOf(request)))
    return listResponse(
      'pinfold.platform.vulnerabilities.v2.ListAdvisoriesResponse',
      'advisories',
      listed,
      toMessage,
      request,
    )
  },
}

/** The filters by value, with the members of the request that hold them. */
const valueFilters = {
  advisoryIds: facets.advisoryId,
  legacyAdvisoryIds: facets.legacyAdvisoryId,
  artifactNames: facets.artifactName,
  artifactTypes: facets.artifactType,
  artifactArchitectures: facets.artifactArchitecture,
  componentNames: facets.componentName,
  componentTypes: facets.componentType,
  componentLocations: facets.componentLocation,
  aliases: facets.alias,
  eventAuthors: facets.eventAuthor,
  eventReviewers: facets.eventReviewer,
} as const

const maxValues = 1000

function filterOf(request: ListAdvisoriesRequest): AdvisoryFilter {
  const { origin, latestEventType, query } = request
  const values = Object.entries<number>(valueFilters).flatMap(([member, facet]) => {
    if (member === 'artifactNames' && origin !== undefined) return []
    const wanted = distinct(request, member as keyof typeof valueFilters)
    return wanted.length > 0 ? [{ facet, values: wanted }] : []
  })
  if (origin !== undefined) values.push({ facet: facets.origin, values: [origin] })
  if (latestEventType) {
    const type = known(EventTypeFilter, 'latest_event_type', latestEventType)
    values.push({ facet: facets.latestEventType, values: [String(type)] })
  }
  const numbers = [
    { facet: facets.reviewStates, numbers: numbersOf(ReviewState, 'event_review_states', request.eventReviewStates) },
    { facet: facets.eventTypes, numbers: numbersOf(EventTypeFilter, 'event_types', request.eventTypes) },
  ].filter((one) => one.numbers.length > 0)
  return { values, numbers, excludedAuthors: distinct(request, 'excludeEventAuthors'), query }
}

function distinct(request: ListAdvisoriesRequest, member: keyof typeof valueFilters | 'excludeEventAuthors'): string[] {
  const values = [...new Set(request[member])]
  if (values.length <= maxValues) return values
  throw invalid({ field: snakeCase(member), description: `must hold at most ${maxValues} different values` })
}

/** The value that stands for any makes the filter none. */
function numbersOf(of: object, field: string, numbers: readonly number[]): readonly number[] {
  for (const number of numbers) known(of, field, number)
  return numbers.includes(0) ? [] : numbers
}

/** Over gRPC a number comes as it is. */
function known(of: object, field: string, number: number): number {
  if (!Object.values(of).includes(number)) throw invalid({ field, description: 'is not a known value' })
  return number
}

function toMessage({ advisory, severities }: service.ShownAdvisory): AdvisoryMessage {
  return {
    $typeName: 'pinfold.platform.vulnerabilities.v2.Advisory',
    uid: advisory.uid,
    advisoryId: advisory.advisoryId,
    createTime: timestamp(advisory.createTime),
    updateTime: timestamp(advisory.updateTime),
    author: advisory.author,
    artifactName: advisory.artifactName,
    artifactType: advisory.artifactType,
    artifactArchitecture: advisory.artifactArchitecture,
    componentName: advisory.componentName,
    componentLocation: advisory.componentLocation,
    componentType: advisory.componentType,
    aliases: advisory.aliases,
    events: advisory.events.map(toEventMessage),
    ...(advisory.legacyAdvisoryId === '' ? {} : { legacyAdvisoryId: advisory.legacyAdvisoryId }),
    severities: severities.map(({ type, score }) => ({
      $typeName: 'pinfold.platform.vulnerabilities.v2.Severity',
      type: type as Severity['type'],
      score,
    })),
  }
}
