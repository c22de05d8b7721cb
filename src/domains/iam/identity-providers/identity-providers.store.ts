import { addToLists, type Keys, type Listing, moveInLists, nodeList, removeFromLists } from '#db/listing.ts'
import { type Reader, type Sql, sql, type Tx } from '#db/sql.ts'
import { parentOf, top } from '#lib/uid.ts'
import type { Discovery, IdentityProvider, Oidc } from './identity-providers.model.ts'
import type { ScimSettings } from './scim-settings.model.ts'

type Row = Omit<IdentityProvider, 'oidc' | 'defaultRole' | 'scim' | 'discovery'> & {
  oidc: string
  defaultRole: string | null
  scim: string
  discovery: string
}

const columns = sql`
  t.uid, t.name, t.description, t.default_role AS "defaultRole", t.oidc, t.scim, t.discovery,
  t.create_time AS "createTime", t.update_time AS "updateTime"`
const kind = 'identity_providers'
const listing: Listing = { kind, table: 'identity_providers', columns }

function fromRow({ oidc, defaultRole, scim, discovery, ...row }: Row): IdentityProvider {
  const provider = {
    ...row,
    defaultRole: defaultRole ?? '',
    oidc: JSON.parse(oidc) as Oidc,
    discovery: discovery === '' ? undefined : (JSON.parse(discovery) as Discovery),
  }
  return scim === '' ? provider : { ...provider, scim: JSON.parse(scim) as ScimSettings }
}

const discoveryText = (discovery: Discovery | undefined): string => (discovery ? JSON.stringify(discovery) : '')

/** Notes another attempt, unless somebody has changed the provider meanwhile. */
export async function setDiscovery(tx: Tx, { uid, updateTime }: IdentityProvider, discovery: Discovery | undefined) {
  await tx.run(sql`
    UPDATE identity_providers SET discovery = ${discoveryText(discovery)} WHERE uid = ${uid} AND update_time = ${updateTime}`)
}

const keysOf = ({ name, createTime, updateTime }: IdentityProvider): Keys => ({
  name,
  create_time: createTime,
  update_time: updateTime,
})

export async function findProvider(reader: Reader, uid: string): Promise<IdentityProvider | undefined> {
  const row = await reader.get<Row>(sql`SELECT ${columns} FROM identity_providers t WHERE t.uid = ${uid}`)
  return row && fromRow(row)
}

/** The oldest provider of a verified organisation, by the organisation's name. */
export async function providerOfVerified(reader: Reader, name: string): Promise<string | undefined> {
  const row = await reader.get<{ uid: string }>(sql`
    SELECT t.uid FROM groups g JOIN identity_providers t ON t.parent_uid = g.uid
     WHERE g.parent_uid = ${top} AND g.name = ${name} AND g.verified = 1
     ORDER BY t.create_time, t.uid LIMIT 1`)
  return row?.uid
}

/** The sealed client secret; empty when the provider has none. */
export async function sealedSecretOf(reader: Reader, uid: string): Promise<Uint8Array> {
  const row = await reader.get<{ secret: Uint8Array }>(
    sql`SELECT client_secret AS secret FROM identity_providers WHERE uid = ${uid}`,
  )
  return row?.secret ?? new Uint8Array()
}

export type ProviderFilter = { name: string }

export const providerList = nodeList(listing, fromRow, conditions)

function conditions(filter: ProviderFilter): Sql[] {
  return filter.name === '' ? [] : [sql`t.name = ${filter.name}`]
}

/** `false` when another provider of the organisation has the name. */
export async function insertProvider(tx: Tx, provider: IdentityProvider, secret: Uint8Array): Promise<boolean> {
  const { uid, name, description, defaultRole, oidc, createTime, updateTime } = provider
  const row = await tx.get<{ id: number }>(sql`
    INSERT INTO identity_providers (uid, parent_uid, name, description, default_role, oidc, client_secret, discovery,
                                    create_time, update_time)
    VALUES (${uid}, ${parentOf(uid)}, ${name}, ${description}, ${defaultRole || null}, ${JSON.stringify(oidc)}, ${secret},
            ${discoveryText(provider.discovery)},
            ${createTime}, ${updateTime})
        ON CONFLICT (parent_uid, name) DO NOTHING
    RETURNING id`)
  if (!row) return false
  await addToLists(tx, kind, uid, row.id, keysOf(provider))
  return true
}

/** `false` when another provider of the organisation has the new name. */
export async function patchProvider(
  tx: Tx,
  before: IdentityProvider,
  after: IdentityProvider,
  secret: Uint8Array,
): Promise<boolean> {
  if (before.name !== after.name) {
    const taken = await tx.get(sql`
      SELECT 1 AS found FROM identity_providers WHERE parent_uid = ${parentOf(before.uid)} AND name = ${after.name}`)
    if (taken) return false
  }
  await tx.run(sql`
    UPDATE identity_providers
       SET name = ${after.name}, description = ${after.description}, default_role = ${after.defaultRole || null},
           oidc = ${JSON.stringify(after.oidc)}, client_secret = ${secret},
           discovery = ${discoveryText(after.discovery)}, update_time = ${after.updateTime}
     WHERE uid = ${before.uid}`)
  await moveInLists(tx, kind, before.uid, keysOf(before), keysOf(after))
  return true
}

export async function deleteProvider(tx: Tx, provider: IdentityProvider): Promise<void> {
  await tx.run(sql`DELETE FROM identity_providers WHERE uid = ${provider.uid}`)
  await removeFromLists(tx, kind, provider.uid, keysOf(provider))
}

export async function isDefaultRole(reader: Reader, role: string): Promise<boolean> {
  const row = await reader.get(sql`SELECT 1 AS found FROM identity_providers WHERE default_role = ${role} LIMIT 1`)
  return row !== undefined
}
