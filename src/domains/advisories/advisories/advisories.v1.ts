// Advisories in version 1 of the API. Field names differ from version 2, requests name an order by number, and the list of a
// scope that does not exist is empty.
import type { Handlers } from '#app.ts'
import {
  type Advisories,
  type AdvisoryFilter as AdvisoryFilterMessage,
  type Advisory as AdvisoryMessage,
  AdvisorySchema,
  EventTypeFilter,
  OrderBy,
} from '#gen/pinfold/vulnerabilities/v1/advisories_pb.ts'
import { ReviewStatus } from '#gen/pinfold/vulnerabilities/v1/advisory_events_pb.ts'
import { deleting } from '#lib/contract/handlers.ts'
import { messageOf, required } from '#lib/contract/messages.ts'
import { withFieldNames } from '#lib/errors.ts'
import { snakeCase } from '#lib/fields.ts'
import { pageOrNothing } from '#lib/lists/lists.ts'
import { readPage } from '#lib/lists/paging.ts'
import { type Advisory, advisoryFields, aliasOrderField } from './advisories.model.ts'
import { listAdvisories } from './advisories.service.ts'
import { eventFieldNames, fromEventMessage, toEventMessage } from './advisory-events.v1.ts'
import { type AdvisoryFilter, facets, filterFrom, knownNumber, latestIs } from './advisory-terms.model.ts'
import { type AdvisoryContent, createAdvisory, deleteAdvisory, updateAdvisory } from './advisory-writes.service.ts'
import { addEvent, listEvents, updateEvent } from './reviews.service.ts'

const toAdvisory = messageOf(AdvisorySchema, {
  id: 'uid',
  legacyAdvisoryID: 'legacyAdvisoryId',
  createdAt: 'createTime',
  updatedAt: 'updateTime',
})
const rules = { fields: { ...advisoryFields, aliasOrder: aliasOrderField }, defaultOrder: 'uid' }

const names = { ...eventFieldNames, legacy_advisory_id: 'legacyAdvisoryID' }

export const advisoriesV1: Handlers<typeof Advisories> = {
  async create(call, { parentId, advisory }) {
    const content = required(advisory, 'advisory')
    const events = content.events.map((event, i) => fromEventMessage(event, `events[${i}].`))
    const made = createAdvisory(call, parentId, { ...fromMessage(content), events })
    return toMessage(await withFieldNames(names, made))
  },

  async list(call, request) {
    const { id, uidp, pageSize, pageToken, orderBy } = request
    const order = orders[knownNumber(OrderBy, 'order_by', orderBy) as OrderBy]!
    const asked = { pageSize: sizeOf(pageSize), pageToken, orderBy: order, skip: 0 }
    const filter = filterOf(request)
    const page = readPage(call, asked, rules, [id, uidp, filter])
    const { items, next, total } = await pageOrNothing(call, { uidp, id }, { page, filter }, listAdvisories)
    return {
      $typeName: 'pinfold.platform.vulnerabilities.v1.AdvisoriesList',
      id,
      items: items.map(({ advisory }) => toMessage(advisory)),
      nextPageToken: next,
      totalCount: BigInt(total),
    }
  },

  async update(call, advisory) {
    return toMessage(await withFieldNames(names, updateAdvisory(call, advisory.id, fromMessage(advisory))))
  },

  delete: deleting('id', deleteAdvisory),

  async createAdvisoryEvent(call, { parentId, advisoryEvent }) {
    const event = fromEventMessage(required(advisoryEvent, 'advisory_event'))
    return toEventMessage(await withFieldNames(names, addEvent(call, parentId, event)))
  },

  async listAdvisoryEvents(call, { parentId }) {
    const items = (await listEvents(call, parentId)).map(toEventMessage)
    return { $typeName: 'pinfold.platform.vulnerabilities.v1.AdvisoryEventList', parentId, items }
  },

  async updateAdvisoryEvent(call, event) {
    return toEventMessage(await withFieldNames(names, updateEvent(call, event.id, fromEventMessage(event))))
  },
}

/** Lists contain no deleted advisories, so sorting by deletion time changes nothing. */
const orders: Record<OrderBy, string> = {
  [OrderBy.ORDER_BY_UNSPECIFIED]: 'uid asc',
  [OrderBy.ID_ASC]: 'uid asc',
  [OrderBy.ID_DESC]: 'uid desc',
  [OrderBy.CREATED_AT_ASC]: 'create_time asc',
  [OrderBy.CREATED_AT_DESC]: 'create_time desc',
  [OrderBy.ALIASES_ASC]: 'alias_order asc',
  [OrderBy.ALIASES_DESC]: 'alias_order desc',
  [OrderBy.UPDATED_AT_ASC]: 'update_time asc',
  [OrderBy.UPDATED_AT_DESC]: 'update_time desc',
  [OrderBy.DELETED_AT_ASC]: 'uid asc',
  [OrderBy.DELETED_AT_DESC]: 'uid desc',
}

/** Page size as a number. A value beyond the safe integers becomes a number that is larger than any list. */
function sizeOf(asked: bigint): number {
  const most = BigInt(Number.MAX_SAFE_INTEGER)
  return Number(asked > most ? most : asked)
}

/** Filters by value, each with its field in the request. */
const valueFilters = {
  advisoryIds: facets.advisoryId,
  legacyAdvisoryIds: facets.legacyAdvisoryId,
  artifactName: facets.artifactName,
  artifactType: facets.artifactType,
  artifactArchitecture: facets.artifactArchitecture,
  componentName: facets.componentName,
  componentType: facets.componentType,
  componentLocation: facets.componentLocation,
  aliases: facets.alias,
  eventAuthor: facets.eventAuthor,
  eventReviewer: facets.eventReviewer,
} as const

function filterOf(request: AdvisoryFilterMessage): AdvisoryFilter {
  const { origin, latestEventType, eventStatuses, eventTypes, excludeEventAuthor } = request
  const latest = latestEventType ? knownNumber(EventTypeFilter, 'latest_event_type', latestEventType) : 0
  return filterFrom({
    values: Object.entries(valueFilters).map(([member, facet]) => {
      return { facet, field: snakeCase(member), values: request[member as keyof typeof valueFilters] }
    }),
    numbers: [
      { facet: facets.reviewStates, field: 'event_statuses', numbers: eventStatuses, of: ReviewStatus },
      { facet: facets.eventTypes, field: 'event_types', numbers: eventTypes, of: EventTypeFilter },
    ],
    origin,
    latest: latest === 0 ? [] : latestIs(latest),
    excludedAuthors: { field: 'exclude_event_author', values: excludeEventAuthor },
    query: '',
  })
}

function fromMessage(message: AdvisoryMessage): AdvisoryContent {
  const { author, artifactName, artifactType, artifactArchitecture, aliases } = message
  const { componentName = '', componentType = '', componentLocation = '', legacyAdvisoryID = '' } = message
  const artifact = { artifactName, artifactType, artifactArchitecture }
  const component = { componentName, componentType, componentLocation }
  return { author, ...artifact, ...component, aliases, legacyAdvisoryId: legacyAdvisoryID }
}

function toMessage(advisory: Advisory): AdvisoryMessage {
  return toAdvisory({
    ...advisory,
    componentName: advisory.componentName || undefined,
    componentType: advisory.componentType || undefined,
    componentLocation: advisory.componentLocation || undefined,
    legacyAdvisoryId: advisory.legacyAdvisoryId || undefined,
    events: advisory.events.map(toEventMessage),
  })
}
