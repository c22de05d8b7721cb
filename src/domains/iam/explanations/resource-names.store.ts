import { allOf } from '#db/bulk.ts'
import { list, type Reader, sql } from '#db/sql.ts'
import type { NamedKind, NamesWanted, ResourceName } from '#domains/outbox/hooks.ts'
import { isAtOrBelow, operatorUid, parentOf, top } from '#lib/uid.ts'

type Row = { uid: string; kind: NamedKind; name: string }

const person: NamedKind = 'person'

/** Most uids in one statement, which has them several times. */
const atOnce = 60

/**
 * Names of groups, roles, identity providers and identities. Leaves out resources of other organizations, and people who are
 * neither members of the organization nor actors.
 */
export async function resourceNames(
  reader: Reader,
  { organization, uids, actors }: NamesWanted,
): Promise<ResourceName[]> {
  const wanted = new Set(uids.filter((uid) => parentOf(uid) === top || isAtOrBelow(uid, organization)))
  const isActor = new Set(actors.flatMap((uid) => [uid, parentOf(uid)]))
  const rows = await allOf<Row, string>(
    reader,
    [...wanted, ...[...isActor].filter((uid) => uid !== top && !wanted.has(uid))],
    (some) => sql`
      SELECT uid, 'group' AS kind, name FROM groups WHERE uid IN (${list(some)})
       UNION ALL
      SELECT uid, 'role' AS kind, name FROM roles WHERE uid IN (${list(some)})
       UNION ALL
      SELECT uid, 'identity provider' AS kind, name FROM identity_providers WHERE uid IN (${list(some)})
       UNION ALL
      SELECT uid, 'person' AS kind, CASE WHEN coalesce(email, '') = '' THEN name ELSE email END AS name
        FROM identities WHERE uid IN (${list(some)})`,
    atOnce,
  )
  const people = rows.filter(({ uid, kind }) => kind === person && parentOf(uid) === top && !isActor.has(uid))
  const members = await membersOf(
    reader,
    organization,
    people.map(({ uid }) => uid),
  )
  const isVisible = ({ uid, kind }: Row): boolean => {
    if (kind === 'group') return isAtOrBelow(uid, organization)
    return kind !== person || parentOf(uid) !== top || isActor.has(uid) || members.has(uid)
  }
  const operator: Row[] = wanted.has(operatorUid) ? [{ uid: operatorUid, kind: person, name: 'operator' }] : []
  return [...rows.filter(isVisible).map(withKind), ...operator]
}

/** The uid of a person has no parent. */
function withKind(row: Row): Row {
  return row.kind === person && parentOf(row.uid) !== top ? { ...row, kind: 'service account' } : row
}

async function membersOf(reader: Reader, organization: string, people: readonly string[]): Promise<Set<string>> {
  const rows = await allOf<{ uid: string }, string>(
    reader,
    people,
    (some) => sql`
      SELECT DISTINCT identity_uid AS uid FROM role_bindings
       WHERE identity_uid IN (${list(some)}) AND accepted = 1
         AND uid > ${`${organization}/`} AND uid < ${`${organization}0`}`,
  )
  return new Set(rows.map(({ uid }) => uid))
}
