import type { Handlers } from '#app.ts'
import type {
  AdvisoryControlService,
  ImportedAdvisory as ImportedMessage,
} from '#gen/pinfold/control/vulnerabilities/v1/advisories_pb.ts'
import { ReviewState, ReviewStateSchema } from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { invalid, noKnownValue } from '#lib/errors.ts'
import { toIso } from '#lib/timestamp.ts'
import { type ImportedAdvisory, importAdvisories } from './advisories.service.ts'
import { fromEventMessage, toEventMessage } from './advisory-events.v2.ts'
import { addEvent, reviewEvent } from './reviews.service.ts'

export const advisoryControl: Handlers<typeof AdvisoryControlService> = {
  async importAdvisories(call, { parent, advisories }) {
    const counts = await importAdvisories(call, parent, advisories.map(fromMessage))
    return { $typeName: 'pinfold.control.vulnerabilities.v1.ImportAdvisoriesResponse', ...counts }
  },

  async createAdvisoryEvent(call, { parent, advisoryEvent }) {
    if (!advisoryEvent) throw invalid({ field: 'advisory_event', description: 'is required' })
    if (advisoryEvent.reviewState > ReviewState.PENDING) {
      throw invalid({
        field: 'review_state',
        description: 'must be empty or PENDING for a new event; use ReviewAdvisoryEvent to approve it',
      })
    }
    return toEventMessage(await addEvent(call, parent, fromEventMessage(advisoryEvent)))
  },

  async reviewAdvisoryEvent(call, { uid, reviewState, reviewer }) {
    return toEventMessage(await reviewEvent(call, uid, { state: reviewState, reviewer }))
  },
}

function fromMessage({ origin, advisory }: ImportedMessage, index: number): ImportedAdvisory {
  const at = `advisories[${index}].advisory`
  if (!advisory) throw invalid({ field: at, description: 'is required' })
  return {
    advisoryId: advisory.advisoryId,
    legacyAdvisoryId: advisory.legacyAdvisoryId ?? '',
    origin,
    author: advisory.author,
    artifactName: advisory.artifactName,
    artifactType: advisory.artifactType,
    artifactArchitecture: advisory.artifactArchitecture,
    componentName: advisory.componentName,
    componentType: advisory.componentType,
    componentLocation: advisory.componentLocation,
    aliases: advisory.aliases,
    events: advisory.events.map((event, i) => {
      const path = `${at}.events[${i}]`
      if (!event.createTime) throw invalid({ field: `${path}.create_time`, description: 'is required' })
      if (!Object.values<number>(ReviewState).includes(event.reviewState)) {
        throw invalid({ field: `${path}.review_state`, description: noKnownValue(ReviewStateSchema) })
      }
      return {
        ...fromEventMessage(event, path),
        uid: '',
        createTime: toIso(event.createTime),
        reviewState: event.reviewState || ReviewState.APPROVED,
        imported: true,
      }
    }),
  }
}
