// All values that are encrypted under the master key are encrypted under another one, completely or not at all.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { opensRows, reencryptRows, WrongMasterKey } from '#db/encrypted-rows.ts'
import { type Db, ident, raw, sql } from '#db/sql.ts'
import { insertFamily } from '#domains/iam/sessions/own-grants.store.ts'
import { insertSession } from '#domains/iam/sessions/sessions.store.ts'
import { insertAttempt } from '#domains/iam/sessions/sign-ins.store.ts'
import { sequenceLedgers } from '#domains/ledger/ledger.job.ts'
import { witnessVkey } from '#domains/ledger/proofs/witness.service.ts'
import { type EncryptedColumn, encryptedColumns, type Purpose } from '#lib/crypto/encrypted-columns.ts'
import { createSecretCipher, type SecretCipher } from '#lib/crypto/secret-cipher.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { plantTag } from '../support/tags.ts'

const columns = Object.entries(encryptedColumns).flatMap(([purpose, some]) =>
  some.map((column: EncryptedColumn) => ({ ...column, purpose: purpose as Purpose })),
)

/** Columns of bytes that contain no secrets. */
/** The response to a program is encrypted with the program's own key. */
const plainColumns = [
  'group_invites.public_key',
  'headless_sign_ins.encrypted',
  'ledger_tiles.hashes',
  'manifests.content',
  'tag_parts.held',
]

test('each column of bytes is listed as encrypted or as plain', async () => {
  await using pinfold = await startPinfold()
  const { db } = pinfold.app
  const found =
    db.engine === 'sqlite'
      ? await db.all<{ name: string }>(
          raw(`
          SELECT t.name || '.' || c.name AS name FROM sqlite_master t, pragma_table_info(t.name) c
           WHERE t.type = 'table' AND c.type = 'BLOB'`),
        )
      : await db.all<{ name: string }>(
          raw(`
          SELECT table_name || '.' || column_name AS name FROM information_schema.columns
           WHERE table_schema = current_schema() AND data_type = 'bytea'`),
        )
  const listed = columns.map(({ table, column }) => `${table}.${column}`)
  assert.deepEqual(found.map(({ name }) => name).sort(), [...listed, ...plainColumns].sort())
})

/** A server with a value in each encrypted column. */
async function withSecrets() {
  const closing = new AsyncDisposableStack()
  const issuer = closing.use(await startIssuer())
  const options = { allowPrivateAddresses: true, allowInsecureIssuers: true, allowInsecureSinks: true }
  const pinfold = closing.use(await startPinfold({ ...options, signingAlgorithms: ['ES256', 'RS256'] }))
  const org = await pinfold.seed.group()
  await pinfold.seed.provider(org.uid, issuer.url)
  for (let i = 0; i < 2; i++) {
    const { uid } = await pinfold.seed.subscription(org.uid)
    // At the second rotation, the first secret has already been shown, so it stays valid for a while.
    for (let n = 0; n < 2; n++) ok(await pinfold.operator.post(`/events/v2/subscriptions/${uid}:rotateSecret`))
  }
  const upstream = { name: 'hub', url: 'https://registry.example.com', username: 'me', password: 'hidden words' }
  ok(await pinfold.operator.post(`/registry/v2/upstreams/${org.uid}`, upstream))
  const scanner = { name: 'finder', url: 'https://scanner.example.com', credential: 'Bearer hidden-words' }
  ok(await pinfold.operator.post('/control/v1/scanners:put', { scanner }))
  const named = { 'idempotency-key': 'hidden' }
  ok(await pinfold.operator.call('POST', `/iam/v2/groups/${org.uid}`, { name: 'team' }, named))
  await plantTag(pinfold, (await pinfold.seed.repo(org.uid)).uid, 'v1')
  await runJob(pinfold.app, sequenceLedgers)
  await witnessVkey(pinfold.app, 'witness.example')
  await signSomebodyIn(pinfold)
  return { pinfold, closing }
}

/** Creates the rows that an unfinished and a finished sign-in leave. */
async function signSomebodyIn({ app }: Pinfold): Promise<void> {
  const { db, cipher } = app
  const seal = (purpose: Purpose) => cipher.encrypt(purpose, Buffer.from(`for ${purpose}`))
  const [at, text, uid] = ['2026-01-01T00:00:00.000Z', '', `${'a'.repeat(40)}/${'b'.repeat(16)}`]
  const session = { uid, identityUid: 'a'.repeat(40), kind: 'client' as const, provider: text, organization: text }
  const times = { createTime: at, lastUsedTime: at, endTime: at, expireTime: at, authTime: 0 }
  const profile = { name: text, picture: text, email: text, emailVerified: false }
  const more = {
    upstreamSid: text,
    externalId: text,
    act: {},
    profile,
    granted: new Map(),
    groupRoles: [],
    source: text,
    userAgent: text,
  }
  const attempt = { stateHash: 'a', browserHash: 'b', provider: 'c', callback: 'd', asked: '{}', expireTime: at }
  const family = { sessionUid: uid, familyHash: 'a', currentHash: 'b', previousHash: text, rotatedTime: at }
  await db.tx(async (tx) => {
    await insertAttempt(tx, { ...attempt, sealed: seal('sign-in-attempt') })
    await insertSession(tx, { ...session, ...more, ...times }, { cookieHash: null, idToken: seal('session-id-token') })
    await insertFamily(tx, { ...family, sealedKey: seal('refresh-token-key') })
  })
}

/** Plain text of all encrypted values, or `undefined` for values that the key cannot decrypt. */
async function opened(db: Db, cipher: SecretCipher): Promise<Record<string, (string | undefined)[]>> {
  const all: Record<string, (string | undefined)[]> = {}
  for (const { table, key, column, purpose } of columns) {
    const rows = await db.all<{ sealed: Uint8Array }>(sql`
      SELECT ${ident(column)} AS sealed FROM ${ident(table)} WHERE ${ident(column)} IS NOT NULL ORDER BY ${ident(key)}`)
    all[`${table}.${column}`] = rows.map(({ sealed }) => cipher.decrypt(purpose, sealed)?.toString('hex'))
  }
  return all
}

test('encrypts all secrets with the new key, with the same contents', async () => {
  const { pinfold, closing } = await withSecrets()
  await using _ = closing
  const { db, cipher } = pinfold.app
  const before = await opened(db, cipher)
  for (const [column, values] of Object.entries(before)) {
    assert.ok(values.length > 0 && values.every((one) => one !== undefined && one !== ''), column)
  }
  const next = createSecretCipher(randomBytes(32))
  assert.deepEqual([await opensRows(db, cipher), await opensRows(db, next)], [true, false])
  const count = await db.tx((tx) => reencryptRows(tx, cipher, next))
  assert.equal(count, Object.values(before).flat().length)
  assert.deepEqual(await opened(db, next), before)
  assert.ok(
    Object.values(await opened(db, cipher))
      .flat()
      .every((one) => one === undefined),
  )
  assert.deepEqual([await opensRows(db, cipher), await opensRows(db, next)], [false, true])
})

test('changes nothing if one value cannot be decrypted, and names the value', async () => {
  const { pinfold, closing } = await withSecrets()
  await using _ = closing
  const { db, cipher } = pinfold.app
  const { uid } = (await db.get<{ uid: string }>(sql`SELECT max(uid) AS uid FROM subscriptions`))!
  const foreign = createSecretCipher(randomBytes(32)).encrypt('subscription-secret', randomBytes(32))
  await db.tx((tx) => tx.run(sql`UPDATE subscriptions SET old_secret = ${foreign} WHERE uid = ${uid}`))
  const before = await opened(db, cipher)
  const reseal = db.tx((tx) => reencryptRows(tx, cipher, createSecretCipher(randomBytes(32))))
  await assert.rejects(reseal, (error: Error) => {
    assert.ok(error instanceof WrongMasterKey)
    assert.match(error.message, new RegExp(`^subscriptions.old_secret of ${uid} is encrypted with another master key$`))
    return true
  })
  assert.deepEqual(await opened(db, cipher), before)
})

test('encrypts more values than fit into one read', async () => {
  await using pinfold = await startPinfold()
  const { db, cipher } = pinfold.app
  const secret = (i: number) => cipher.encrypt('signing-key', Buffer.from(String(i)))
  await db.tx(async (tx) => {
    for (let i = 0; i < 450; i++) {
      await tx.run(sql`
        INSERT INTO signing_keys (kid, public_jwk, private_jwk, active_time, create_time)
        VALUES (${`kid-${i}`}, '{}', ${secret(i)}, '2026', '2026')`)
    }
  })
  const next = createSecretCipher(randomBytes(32))
  assert.equal(await db.tx((tx) => reencryptRows(tx, cipher, next)), 451)
  assert.ok((await opened(db, next))['signing_keys.private_jwk']!.every((one) => one !== undefined))
})
