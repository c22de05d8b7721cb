import { addToLists, type Keys, type Listing, moveInLists, nodeList, removeFromLists } from '#db/listing.ts'
import { list, type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { parentOf } from '#lib/uid.ts'
import { type Identity, type Relationship, relationshipKind, relationshipTypes } from './identities.model.ts'

type Row = Omit<Identity, keyof Relationship> & { relationship: string }

const columns = sql`
  t.uid, t.name, t.description, t.company, t.email, t.email_unverified AS "emailUnverified", t.relationship,
  t.last_seen_time AS "lastSeenTime", t.create_time AS "createTime", t.update_time AS "updateTime"`
const kind = 'identities'
const listing: Listing = { kind, table: 'identities', columns }

function fromRow({ relationship, ...row }: Row): Identity {
  return { ...row, ...(JSON.parse(relationship) as Relationship) }
}

const keysOf = (identity: Identity): Keys => ({
  name: identity.name,
  create_time: identity.createTime,
  update_time: identity.updateTime,
})

export async function findIdentity(reader: Reader, uid: string): Promise<Identity | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM identities t WHERE t.uid = ${uid}`)
  return row && fromRow(row)
}

/** `relationshipType` is one of the stored words, or empty. */
export type IdentityFilter = { name: string; relationshipType: string }

export const identityList = nodeList(listing, fromRow, conditions)

function conditions(filter: IdentityFilter): Sql[] {
  const found: Sql[] = []
  if (filter.name !== '') found.push(sql`t.name = ${filter.name}`)
  if (filter.relationshipType !== '') found.push(sql`t.relationship_type = ${filter.relationshipType}`)
  return found
}

/** `false` when there is one of this uid, which only a person's can be. */
export async function insertIdentity(tx: Tx, identity: Identity): Promise<boolean> {
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO identities (uid, parent_uid, name, description, company, email, email_unverified,
                            relationship_type, relationship, last_seen_time, create_time, update_time)
    VALUES (${identity.uid}, ${parentOf(identity.uid)}, ${identity.name}, ${identity.description}, ${identity.company},
            ${identity.email}, ${identity.emailUnverified}, ${typeOf(identity)}, ${relationshipText(identity)},
            ${identity.lastSeenTime}, ${identity.createTime}, ${identity.updateTime})
        ON CONFLICT (uid) DO NOTHING
    RETURNING id`)
  if (!row) return false
  await addToLists(tx, kind, identity.uid, row.id, keysOf(identity))
  return true
}

export async function patchIdentity(tx: Tx, before: Identity, after: Identity): Promise<void> {
  await tx.run(sql`
    UPDATE identities
       SET name = ${after.name}, description = ${after.description}, company = ${after.company},
           relationship_type = ${typeOf(after)}, relationship = ${relationshipText(after)},
           update_time = ${after.updateTime}
     WHERE uid = ${before.uid}`)
  await moveInLists(tx, kind, before.uid, keysOf(before), keysOf(after))
}

export async function deleteIdentity(tx: Tx, identity: Identity): Promise<void> {
  await tx.run(sql`DELETE FROM identities WHERE uid = ${identity.uid}`)
  await removeFromLists(tx, kind, identity.uid, keysOf(identity))
}

function typeOf(identity: Identity): string {
  const set = relationshipKind(identity)
  return set ? relationshipTypes[set] : ''
}

function relationshipText({ claimMatch, staticKeys, awsIdentity, servicePrincipal }: Identity): string {
  return JSON.stringify({ claimMatch, staticKeys, awsIdentity, servicePrincipal })
}

/** Times only move forward, whichever node writes last. */
export async function setLastSeen(tx: Tx, uid: string, time: string): Promise<void> {
  await tx.run(sql`UPDATE identities SET last_seen_time = ${time} WHERE uid = ${uid} AND last_seen_time < ${time}`)
}

export async function findJobTitle(reader: Reader, uid: string): Promise<string> {
  const row = await reader.get<{ title: string }>(sql`SELECT job_title AS title FROM identities WHERE uid = ${uid}`)
  return row?.title ?? ''
}

/** What a person says of themselves. */
export async function patchProfile(tx: Tx, before: Identity, after: Identity, jobTitle: string): Promise<void> {
  await tx.run(sql`
    UPDATE identities SET company = ${after.company}, job_title = ${jobTitle}, update_time = ${after.updateTime}
     WHERE uid = ${before.uid}`)
  await moveInLists(tx, kind, before.uid, keysOf(before), keysOf(after))
}

/** What these identities are called; those that there are. */
export async function namesOf(reader: Reader, uids: readonly string[]) {
  return reader.all<{ uid: string; name: string; email: string }>(sql`
    SELECT uid, name, coalesce(email, '') AS email FROM identities WHERE uid IN (${list(uids)})`)
}

/** The organisation whose provider alone vouches for the person; empty for others, `undefined` for nobody. */
export async function vouchedBy(reader: Reader, identity: string): Promise<string | undefined> {
  const row = await reader.get<{ by: string }>(sql`SELECT vouched_by AS "by" FROM identities WHERE uid = ${identity}`)
  return row?.by
}

export async function setVouchedBy(tx: Tx, identity: string, organization: string): Promise<void> {
  await tx.run(sql`UPDATE identities SET vouched_by = ${organization} WHERE uid = ${identity}`)
}

/**
 * Grants of an identity: the scope of each binding, with the capability numbers of its role as JSON. Returns undefined if
 * the identity does not exist.
 */
export async function listGrants(
  reader: Reader,
  identity: string,
): Promise<{ place: string; capabilities: string }[] | undefined> {
  const rows = await reader.all<{ place: string | null; capabilities: string }>(sql`
    SELECT b.parent_uid AS place, r.capabilities AS capabilities
      FROM identities i
      LEFT JOIN role_bindings b ON b.identity_uid = i.uid AND b.accepted = 1
      LEFT JOIN roles r ON r.uid = b.role_uid
     WHERE i.uid = ${identity}`)
  if (rows.length === 0) return undefined
  return rows.flatMap(({ place, capabilities }) => (place === null ? [] : [{ place, capabilities }]))
}
