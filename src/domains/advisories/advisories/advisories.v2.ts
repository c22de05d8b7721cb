import type { Handlers } from '#app.ts'
import {
  AdvisoriesService,
  type Advisory as AdvisoryMessage,
  AdvisorySchema,
  EventTypeFilter,
  type ListAdvisoriesRequest,
  ReviewState,
} from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { getting, listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { snakeCase } from '#lib/fields.ts'
import { advisoryFields, moved } from './advisories.model.ts'
import * as service from './advisories.service.ts'
import { toEventMessage } from './advisory-events.v2.ts'
import { type AdvisoryFilter, facets, filterFrom, knownNumber, latestButMovesIs } from './advisory-terms.model.ts'

const { method } = AdvisoriesService
const toAdvisory = messageOf(AdvisorySchema)
const rules = { fields: advisoryFields, defaultOrder: 'uid' }

export const advisories: Handlers<typeof AdvisoriesService> = {
  getAdvisory: getting(service.getAdvisory, toMessage),
  listAdvisories: listing(method.listAdvisories, rules, filterOf, service.listAdvisories, toMessage),
}

/** Filters by value, each with its field in the request. */
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
  const events = advisory.events.filter(({ type }) => type !== moved).map(toEventMessage)
  const legacyAdvisoryId = advisory.legacyAdvisoryId || undefined
  return toAdvisory({ ...advisory, events, legacyAdvisoryId, severities })
}
