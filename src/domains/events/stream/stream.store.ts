import { type Reader, sql } from '#db/sql.ts'
import type { OrderedEvent } from './stream.model.ts'

/** ID of the event at a position. Undefined if the event has expired. */
export async function eventIdAt(reader: Reader, position: number): Promise<string | undefined> {
  const row = await reader.get<{ uuid: string }>(sql`
    SELECT uuid FROM events_outbox WHERE position > 0 AND position = ${position}`)
  return row?.uuid
}

/** Position of an event. Undefined if the event does not exist or has expired. */
export async function positionOf(reader: Reader, uuid: string): Promise<number | undefined> {
  // The query has no condition on the position. Otherwise a database with a wrong estimate would search by position instead of by
  // uuid.
  const row = await reader.get<{ position: number }>(sql`SELECT position FROM events_outbox WHERE uuid = ${uuid}`)
  return row && row.position > 0 ? row.position : undefined
}

/** Next events, in order. Positions are assigned in order, so no earlier event can appear later. */
export function eventsAfter(reader: Reader, position: number, limit: number): Promise<OrderedEvent[]> {
  return reader.all<OrderedEvent>(sql`
    SELECT id, uuid, type, audience, source, subject, event_group AS "group", actor, body_type AS "bodyType", body,
           extensions, create_time AS "createTime", position
      FROM events_outbox WHERE position > 0 AND position > ${position} ORDER BY position LIMIT ${limit}`)
}
