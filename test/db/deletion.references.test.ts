// Rows that refer to a group, an identity or a role: each is deleted with it, blocks its deletion, or is kept on purpose.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Db, ident, sql } from '#db/sql.ts'
import { putRequest } from '#domains/iam/access-requests/access-requests.store.ts'
import type { Session } from '#domains/iam/sessions/sessions.model.ts'
import { insertSession } from '#domains/iam/sessions/sessions.store.ts'
import { notePerson } from '#domains/iam/sessions/sign-ins.store.ts'
import { newUid } from '#lib/uid.ts'
import { resources } from '../../src/resources.ts'
import { ok } from '../support/expect.ts'
import { type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

/** `optional`: the column may be empty, and then the row refers to nothing. */
type Reference = { table: string; column: string; target: string; optional: number | boolean }
type Column = Pick<Reference, 'table' | 'column'>

/** Foreign keys that delete their rows or refuse the deletion. */
async function foreignKeys(db: Db): Promise<Reference[]> {
  if (db.engine === 'sqlite') {
    return db.all<Reference>(sql`
      SELECT m.name AS "table", f."from" AS "column", f."table" AS target, c."notnull" = 0 AND c.pk = 0 AS optional
        FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f JOIN pragma_table_info(m.name) c ON c.name = f."from"
       WHERE m.type = 'table' AND f.on_delete <> 'SET NULL'`)
  }
  return db.all<Reference>(sql`
    SELECT f.relname AS "table", a.attname AS "column", t.relname AS target, NOT a.attnotnull AS optional
      FROM pg_constraint c JOIN pg_class f ON f.oid = c.conrelid JOIN pg_class t ON t.oid = c.confrelid
      JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)
     WHERE c.contype = 'f' AND c.connamespace = current_schema()::regnamespace AND c.confdeltype <> 'n'`)
}

async function columns(db: Db): Promise<Column[]> {
  if (db.engine === 'sqlite') {
    return db.all(sql`
      SELECT m.name AS "table", c.name AS "column" FROM sqlite_master m JOIN pragma_table_info(m.name) c
       WHERE m.type = 'table'`)
  }
  return db.all(sql`
    SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
     WHERE table_schema = current_schema()`)
}

/** Tables in which each row has a foreign key to `target`, or to another such table. */
function tiedTo(target: string, keys: readonly Reference[]): Set<string> {
  const tied = new Set([target])
  for (let size = 0; size < tied.size; ) {
    size = tied.size
    for (const key of keys) if (tied.has(key.target) && !key.optional) tied.add(key.table)
  }
  tied.delete(target)
  return tied
}

/** Columns of these names without a foreign key, except those of `declared` tables. */
async function undecided(
  target: string,
  names: readonly string[],
  declared: readonly string[] = [],
): Promise<string[]> {
  const { db } = pinfold.app
  const keys = await foreignKeys(db)
  const tied = tiedTo(target, keys)
  const isDecided = ({ table, column }: Column): boolean =>
    tied.has(table) ||
    declared.includes(table) ||
    keys.some((key) => key.table === table && key.column === column && key.target === target)
  const left = (await columns(db)).filter((one) => names.includes(one.column) && !isDecided(one))
  return left.map(({ table, column }) => `${table}.${column}`).sort()
}

const groupColumns = [
  'parent_uid',
  'group_uid',
  'org_uid',
  'root_uid',
  'organization',
  'organisation',
  'event_group',
  'scope_uid',
  'scope',
  'place',
  'payer',
  'vouched_by',
]

/** References to groups without a foreign key and without an entry in `groupDeletion` of a resource, by reason. */
const ofGroups = {
  'removed by a hook': ['organization_usage.org_uid'],
  'removed with the last repository, which has to be gone before': ['organization_blobs.org_uid'],
  'removed with the identity provider, which has to be gone before': ['sessions.organization'],
  'kept: the history of tags and its proofs outlive their group': ['ledgers.group_uid'],
  'expires, or is removed by a background job': [
    'component_lists.payer',
    'events_outbox.event_group',
    'match_queue.place',
    'pull_streams.place',
    'refusals.organisation',
    'refusals.place',
    'resolved_later.place',
    'search_parts.scope',
    'search_queue.organization',
    'vulnerability_changes.place',
  ],
  'an index or a total of rows that are removed before': [
    'advisory_term_counts.place',
    'affected_packages.place',
    'findings.place',
    'list_counts.place',
    'list_keys.place',
    'list_severities.place',
  ],
  'names no group': ['lifecycles.place'],
}

const identityColumns = [
  'identity_uid',
  'caller',
  'actor',
  'setter',
  'created_by',
  'applied_by',
  'accepted_by',
  'released_by',
  'revoked_by',
  'end_actor',
]

/** References to identities without a foreign key, by reason. */
const ofIdentities = {
  'removed by a hook': ['organization_people.identity_uid', 'role_bindings.identity_uid', 'sessions.identity_uid'],
  'kept by a hook without the name and the address': ['access_requests.identity_uid'],
  'expires by itself': ['headless_sign_ins.identity_uid'],
  'kept: it says who did something': [
    'audit_log.actor',
    'deleted_repos.actor',
    'digest_last_pulls.caller',
    'digest_usage.caller',
    'events_outbox.actor',
    'follows.setter',
    'gate_exceptions.actor',
    'gate_exceptions.revoked_by',
    'group_invites.created_by',
    'holds.actor',
    'holds.released_by',
    'pull_rule_exceptions.actor',
    'pull_rule_exceptions.revoked_by',
    'quarantined.actor',
    'quarantined.released_by',
    'refusals.caller',
    'repo_removals.actor',
    'retention_plans.actor',
    'retention_plans.applied_by',
    'risk_acceptances.actor',
    'risk_acceptances.end_actor',
    'role_bindings.created_by',
    'scan_jobs.actor',
    'scan_reports.actor',
    'tag_history.actor',
    'terms_acceptances.accepted_by',
    'vex_signers.actor',
    'vex_signers.end_actor',
  ],
  'kept: copying stops, since the identity in whose name it is done has no rights': ['repo_syncs.setter'],
}

/** References to roles without a foreign key, by reason. */
const ofRoles = {
  'kept once it has expired: a valid invite keeps the role from being deleted': ['group_invites.role_uid'],
}

const named = (byReason: Record<string, readonly string[]>): string[] => Object.values(byReason).flat().sort()

test('each reference to a group has a foreign key, is in groupDeletion, or has a reason', async () => {
  // A table that belongs to no group needs a reason for each of its references.
  const declared = resources.filter(({ groupDeletion }) => groupDeletion !== 'apart').map(({ table }) => table)
  assert.deepEqual(await undecided('groups', groupColumns, declared), named(ofGroups))
})

test('each reference to an identity has a foreign key or a reason', async () => {
  assert.deepEqual(await undecided('identities', identityColumns), named(ofIdentities))
})

test('each reference to a role has a foreign key or a reason', async () => {
  assert.deepEqual(await undecided('roles', ['role_uid', 'default_role']), named(ofRoles))
})

const later = '2100-01-01T00:00:00.000Z'

async function countOf(reference: string, uid: string): Promise<number> {
  const [table = '', column = ''] = reference.split('.')
  const row = await pinfold.app.db.get<{ count: number }>(sql`
    SELECT count(*) AS count FROM ${ident(table)} WHERE ${ident(column)} = ${uid}`)
  return Number(row!.count)
}

test('hooks delete rows that refer to a group, and none of other groups', async () => {
  const { app, operator, seed } = pinfold
  const [group, other] = [(await seed.group()).uid, (await seed.group()).uid]
  const plant: Record<string, (uid: string) => Promise<unknown>> = {
    'organization_usage.org_uid': (uid) =>
      app.db.tx((tx) =>
        tx.run(sql`
        INSERT INTO organization_usage (org_uid, shard, bytes, uploads, upload_bytes) VALUES (${uid}, 0, 1, 0, 0)`),
      ),
  }
  const removed = ofGroups['removed by a hook']
  assert.deepEqual(Object.keys(plant), removed)
  for (const one of removed) await Promise.all([plant[one]!(group), plant[one]!(other)])
  ok(await operator.delete(`/iam/v2/groups/${group}`))
  for (const one of removed) assert.deepEqual([await countOf(one, group), await countOf(one, other)], [0, 1], one)
})

test('hooks delete rows that refer to an identity, and none of other identities', async () => {
  const { app, operator, seed } = pinfold
  const { uid: group } = await seed.group()
  const [person, other] = [(await seed.person()).uid, (await seed.person()).uid]
  const plant: Record<string, (uid: string) => Promise<unknown>> = {
    'organization_people.identity_uid': (uid) => app.db.tx((tx) => notePerson(tx, group, uid, later)),
    'role_bindings.identity_uid': (uid) => seed.binding(group, uid, roleUids.viewer),
    'sessions.identity_uid': (uid) =>
      app.db.tx((tx) => insertSession(tx, sessionOf(uid), { cookieHash: null, idToken: null })),
  }
  const removed = ofIdentities['removed by a hook']
  assert.deepEqual(Object.keys(plant), removed)
  for (const one of removed) for (const uid of [person, other]) await plant[one]!(uid)
  const times = { createTime: later, askTime: later, expireTime: later }
  const request = { uid: newUid(group), identityUid: person, name: 'Ada', email: 'ada@example.com', ...times }
  await app.db.tx((tx) => putRequest(tx, { ...request, state: 'waiting' }))
  ok(await operator.delete(`/iam/v2/identities/${person}`))
  for (const one of removed) assert.deepEqual([await countOf(one, person), await countOf(one, other)], [0, 1], one)
  const kept = await app.db.all(sql`SELECT name, email, state FROM access_requests WHERE identity_uid = ${person}`)
  assert.deepEqual(kept, [{ name: '', email: '', state: 'withdrawn' }])
})

function sessionOf(identityUid: string): Session {
  const texts = { provider: '', organization: '', upstreamSid: '', externalId: '', source: '', userAgent: '' }
  const times = { createTime: later, lastUsedTime: later, endTime: later, expireTime: later, authTime: 0 }
  const profile = { name: '', picture: '', email: '', emailVerified: false }
  const roles = { granted: new Map<string, bigint>(), groupRoles: [] }
  return { uid: newUid(identityUid), identityUid, kind: 'browser', ...texts, ...times, act: {}, profile, ...roles }
}
