import type { Handlers } from '#app.ts'
import {
  type AdvisoriesService,
  type Advisory as AdvisoryMessage,
  EventTypeFilter,
  type ListAdvisoriesRequest,
  ReviewState,
  type Severity,
} from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { snakeCase } from '#lib/fields.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { advisoryFields, moved } from './advisories.model.ts'
import * as service from './advisories.service.ts'
import { toEventMessage } from './advisory-events.v2.ts'
import { filterFrom, knownNumber } from './advisory-filter.model.ts'
import { type AdvisoryFilter, facets, latestButMovesIs } from './advisory-terms.model.ts'

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

function filterOf(request: ListAdvisoriesRequest): AdvisoryFilter {
  const { origin, latestEventType, query } = request
  const latest = latestEventType ? knownNumber(EventTypeFilter, 'latest_event_type', latestEventType) : 0
  return filterFrom({
    values: Object.entries(valueFilters).map(([member, facet]) => {
      return { facet, field: snakeCase(member), values: request[member as keyof typeof valueFilters] }
    }),
    numbers: [
      {
        facet: facets.reviewStates,
        field: 'event_review_states',
        numbers: request.eventReviewStates,
        of: ReviewState,
      },
      { facet: facets.eventTypes, field: 'event_types', numbers: request.eventTypes, of: EventTypeFilter },
    ],
    origin,
    latest: latest === 0 ? [] : latestButMovesIs(latest),
    excludedAuthors: { field: 'exclude_event_authors', values: request.excludeEventAuthors },
    query,
  })
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
    events: advisory.events.filter(({ type }) => type !== moved).map(toEventMessage),
    ...(advisory.legacyAdvisoryId === '' ? {} : { legacyAdvisoryId: advisory.legacyAdvisoryId }),
    severities: severities.map(({ type, score }) => ({
      $typeName: 'pinfold.platform.vulnerabilities.v2.Severity',
      type: type as Severity['type'],
      score,
    })),
  }
}
