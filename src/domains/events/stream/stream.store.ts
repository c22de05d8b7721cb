import { type Reader, sql } from '#db/sql.ts'
import type { OrderedEvent } from './stream.model.ts'

/** The place of the newest event; no lower one is given any more. */
export async function newestPosition(reader: Reader): Promise<number> {
  const row = await reader.get<{ position: number }>(sql`SELECT position FROM events_router WHERE id = 1`)
  return row!.position
}

/** The event at a place; `undefined` when it is not kept any more. */
export async function eventIdAt(reader: Reader, position: number): Promise<string | undefined> {
  const row = await reader.get<{ uuid: string }>(sql`
    SELECT uuid FROM events_outbox WHERE position > 0 AND position = ${position}`)
  return row?.uuid
}

/** The place of an event; `undefined` when there is none, or not any more. */
export async function positionOf(reader: Reader, uuid: string): Promise<number | undefined> {
  // No condition on the place: a database that guesses badly then reads by place instead of by uuid.
  const row = await reader.get<{ position: number }>(sql`SELECT position FROM events_outbox WHERE uuid = ${uuid}`)
  return row && row.position > 0 ? row.position : undefined
}

/** The next events, in order. Since places are given one after the other, none can appear before these later. */
export function eventsAfter(reader: Reader, position: number, limit: number): Promise<OrderedEvent[]> {
  return reader.all<OrderedEvent>(sql`
    SELECT id, uuid, type, audience, source, subject, event_group AS "group", actor, body_type AS "bodyType", body,
           extensions, create_time AS "createTime", position
      FROM events_outbox WHERE position > 0 AND position > ${position} ORDER BY position LIMIT ${limit}`)
}
