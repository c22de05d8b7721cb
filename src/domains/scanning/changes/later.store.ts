// What was resolved in lists of packages of which not all was kept just then, to be told once it is.
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { matchKinds } from '../queue/queue.model.ts'
import type { Change } from './changes.model.ts'

type About = Pick<Change, 'vulnerability' | 'place'>

/** Whether a list waits to be compared, so that what is found in it may not be all. */
export async function waitsForMatch(reader: Reader, listNo: number): Promise<boolean> {
  const row = await reader.get(sql`
    SELECT 1 AS found FROM match_queue WHERE kind = ${matchKinds.list} AND item = ${String(listNo)} LIMIT 1`)
  return row !== undefined
}

export async function noteLater(tx: Tx, { vulnerability, place }: About, lists: Iterable<number>): Promise<void> {
  for (const listNo of lists) {
    await tx.run(sql`
      INSERT INTO resolved_later (list_id, vulnerability, place) VALUES (${listNo}, ${vulnerability}, ${place})
          ON CONFLICT DO NOTHING`)
  }
}

/** It was told meanwhile, or is not so any more. */
export async function forgetLater(tx: Tx, { vulnerability, place }: About, lists: Iterable<number>): Promise<void> {
  const numbers = [...lists]
  if (numbers.length === 0) return
  await tx.run(sql`
    DELETE FROM resolved_later
     WHERE list_id IN (${list(numbers)}) AND vulnerability = ${vulnerability} AND place = ${place}`)
}

/** The next list behind `after` of which something is to be told. */
export async function nextLater(reader: Reader, after: number): Promise<number | undefined> {
  const row = await reader.get<{ listNo: number }>(sql`
    SELECT list_id AS "listNo" FROM resolved_later WHERE list_id > ${after} ORDER BY list_id LIMIT 1`)
  return row?.listNo
}

/** Some of what is to be told of a list, in order. */
export async function laterOf(
  reader: Reader,
  listNo: number,
  most: number,
): Promise<(About & Pick<Change, 'lastRepo'>)[]> {
  return reader.all<About & { lastRepo: number }>(sql`
    SELECT vulnerability, place, last_repo AS "lastRepo" FROM resolved_later
     WHERE list_id = ${listNo} ORDER BY list_id, vulnerability, place LIMIT ${most}`)
}

/** Notes that the repos up to this one were told. */
export async function noteLaterRepo(tx: Tx, listNo: number, one: About, repo: number): Promise<void> {
  await tx.run(sql`
    UPDATE resolved_later SET last_repo = ${repo}
     WHERE list_id = ${listNo} AND vulnerability = ${one.vulnerability} AND place = ${one.place}`)
}
