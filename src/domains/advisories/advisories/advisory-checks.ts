// Validation of new advisories and events from requests and imports. Field names in errors are relative to the advisory or event.
import type { FieldViolation } from '#lib/errors.ts'
import { snakeCase, violationsOf } from '#lib/fields.ts'
import {
  type Advisory,
  type AdvisoryEvent,
  advisoryEventFields,
  advisoryFields,
  eventTextPattern,
  maxAliases,
  maxEvents,
  maxEventText,
  maxFindingsBytes,
} from './advisories.model.ts'

type NewAdvisory = Omit<Advisory, 'uid' | 'createTime' | 'updateTime'>
type NewEvent = Omit<AdvisoryEvent, 'uid'>

/** All problems of an advisory. An empty public ID is valid, because the server then sets one. */
export function advisoryProblems(advisory: NewAdvisory): FieldViolation[] {
  const { advisoryId, ...rest } = advisory
  const { advisoryId: idRule, ...rules } = advisoryFields
  const problems = violationsOf<Partial<Advisory>>(
    advisoryId === '' ? rules : advisoryFields,
    advisoryId === '' ? rest : advisory,
  )
  if (advisory.aliases.length > maxAliases) problems.push(tooMany('aliases', maxAliases))
  if (new Set(advisory.aliases).size < advisory.aliases.length) {
    problems.push({ field: 'aliases', description: 'must not have the same ID twice' })
  }
  if (advisory.events.length > maxEvents) problems.push(tooMany('events', maxEvents))
  for (const [i, event] of advisory.events.entries()) {
    for (const { field, description } of eventProblems(event)) {
      problems.push({ field: `events[${i}].${field}`, description })
    }
  }
  return problems
}

/** All problems of an event. */
export function eventProblems(event: NewEvent): FieldViolation[] {
  const problems = violationsOf<Partial<AdvisoryEvent>>(advisoryEventFields, event)
  if (Buffer.byteLength(event.findings, 'base64') > maxFindingsBytes) {
    problems.push({ field: 'findings', description: `must be at most ${maxFindingsBytes} bytes` })
  }
  for (const [name, value] of Object.entries(event.data)) {
    const member = snakeCase(name)
    const texts = Array.isArray(value) ? (value as readonly string[]) : [value]
    if (texts.length > maxAliases) problems.push(tooMany(member, maxAliases))
    for (const text of texts) {
      if (typeof text !== 'string') continue
      if (text.length > maxEventText) {
        problems.push({ field: member, description: `must be at most ${maxEventText} characters long` })
      } else if (!eventTextPattern.test(text)) {
        problems.push({ field: member, description: 'must not contain control characters' })
      }
    }
  }
  return problems
}

function tooMany(field: string, most: number): FieldViolation {
  return { field, description: `must have at most ${most} entries` }
}
