import { nodeTable } from '#db/node-table.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { type Identity, type Relationship, relationshipKind, relationshipTypes } from './identities.model.ts'

type Row = Omit<Identity, keyof Relationship> & { relationship: string }

const columns = sql`
  t.uid, t.name, t.description, t.company, t.email, t.email_unverified AS "emailUnverified", t.relationship,
  t.last_seen_time AS "lastSeenTime", t.create_time AS "createTime", t.update_time AS "updateTime"`
function fromRow({ relationship, ...row }: Row): Identity {
  return { ...row, ...(JSON.parse(relationship) as Relationship) }
}

/** `relationshipType` is a stored type of relationship. Empty for all types. */
export type IdentityFilter = { name: string; relationshipType: string }

type Found = Pick<Identity, 'uid' | 'name' | 'email' | 'createTime' | 'updateTime'>

const identities = nodeTable(
  {
    table: 'identities',
    columns,
    sorted: ['name', 'create_time', 'update_time'],
    filters: { name: 'name', relationshipType: 'relationship_type' },
    unique: ['uid'],
    search: { source: 'identities', terms: ({ name, email }: Found) => [name, email] },
  },
  fromRow,
)

export const { list: identityList, find: findIdentity, delete: deleteIdentity } = identities

const valuesOf = (identity: Identity) => ({
  name: identity.name,
  description: identity.description,
  company: identity.company,
  relationship_type: typeOf(identity),
  relationship: relationshipText(identity),
  update_time: identity.updateTime,
})

/**
 * Inserts an identity. Returns false if the uid already exists. That is possible only for a person, since other uids are random.
 */
export function insertIdentity(tx: Tx, identity: Identity): Promise<boolean> {
  const { email, emailUnverified, lastSeenTime, createTime } = identity
  const once = { email, email_unverified: emailUnverified, last_seen_time: lastSeenTime, create_time: createTime }
  return identities.insert(tx, identity, { ...valuesOf(identity), ...once })
}

export async function patchIdentity(tx: Tx, before: Identity, after: Identity): Promise<void> {
  await identities.update(tx, before, after, valuesOf(after))
}

function typeOf(identity: Identity): string {
  const set = relationshipKind(identity)
  return set ? relationshipTypes[set] : ''
}

function relationshipText({ claimMatch, staticKeys, awsIdentity, servicePrincipal }: Identity): string {
  return JSON.stringify({ claimMatch, staticKeys, awsIdentity, servicePrincipal })
}

/** Sets the time of last use. Keeps the stored time if it is later, since several servers write. */
export async function setLastSeen(tx: Tx, uid: string, time: string): Promise<void> {
  await tx.run(sql`UPDATE identities SET last_seen_time = ${time} WHERE uid = ${uid} AND last_seen_time < ${time}`)
}

export async function findJobTitle(reader: Reader, uid: string): Promise<string> {
  const row = await reader.get<{ title: string }>(sql`SELECT job_title AS title FROM identities WHERE uid = ${uid}`)
  return row?.title ?? ''
}

/** Stores the profile of a person. */
export async function patchProfile(tx: Tx, before: Identity, after: Identity, jobTitle: string): Promise<void> {
  const { company, updateTime } = after
  await identities.update(tx, before, after, { company, job_title: jobTitle, update_time: updateTime })
}

/** Names and email addresses of identities. Missing identities are left out. */
export async function namesOf(reader: Reader, uids: readonly string[]) {
  return reader.all<{ uid: string; name: string; email: string }>(sql`
    SELECT uid, name, coalesce(email, '') AS email FROM identities WHERE uid IN (${list(uids)})`)
}

/**
 * Organization whose provider alone vouches for the person. Empty if the settings trust the person's provider. Undefined if the
 * identity does not exist.
 */
export async function vouchedBy(reader: Reader, identity: string): Promise<string | undefined> {
  const row = await reader.get<{ by: string }>(sql`SELECT vouched_by AS "by" FROM identities WHERE uid = ${identity}`)
  return row?.by
}

export async function setVouchedBy(tx: Tx, identity: string, organization: string): Promise<void> {
  await tx.run(sql`UPDATE identities SET vouched_by = ${organization} WHERE uid = ${identity}`)
}

/**
 * Grants of an identity: the group of each accepted binding, with the capability numbers of its role as JSON. Undefined if the
 * identity does not exist.
 */
export async function listGrants(
  reader: Reader,
  identity: string,
): Promise<{ scope: string; capabilities: string }[] | undefined> {
  const rows = await reader.all<{ scope: string | null; capabilities: string }>(sql`
    SELECT b.parent_uid AS scope, r.capabilities AS capabilities
      FROM identities i
      LEFT JOIN role_bindings b ON b.identity_uid = i.uid AND b.accepted = 1
      LEFT JOIN roles r ON r.uid = b.role_uid
     WHERE i.uid = ${identity}`)
  if (rows.length === 0) return undefined
  return rows.flatMap(({ scope, capabilities }) => (scope === null ? [] : [{ scope, capabilities }]))
}
