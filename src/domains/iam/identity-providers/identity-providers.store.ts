import { exists } from '#db/bulk.ts'
import { namedNodes, nodeTable } from '#db/node-table.ts'
import { type Reader, sql, type Tx } from '#db/sql.ts'
import { top } from '#lib/uid.ts'
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

export type ProviderFilter = { name: string }

const providers = nodeTable({ table: 'identity_providers', columns, ...namedNodes }, fromRow)

export const { list: providerList, find: findProvider, delete: deleteProvider } = providers

const valuesOf = (provider: IdentityProvider, secret: Uint8Array) => ({
  name: provider.name,
  description: provider.description,
  default_role: provider.defaultRole || null,
  oidc: JSON.stringify(provider.oidc),
  client_secret: secret,
  discovery: discoveryText(provider.discovery),
  update_time: provider.updateTime,
})

/** Inserts a provider. Returns false if another provider of the organization has the same name. */
export function insertProvider(tx: Tx, provider: IdentityProvider, secret: Uint8Array): Promise<boolean> {
  return providers.insert(tx, provider, { ...valuesOf(provider, secret), create_time: provider.createTime })
}

/** Updates a provider. Returns false if another provider of the organization has the new name. */
export function patchProvider(
  tx: Tx,
  before: IdentityProvider,
  after: IdentityProvider,
  secret: Uint8Array,
): Promise<boolean> {
  return providers.update(tx, before, after, valuesOf(after, secret))
}

/** Stores the result of discovery. Does nothing if the provider was updated meanwhile. */
export async function setDiscovery(tx: Tx, { uid, updateTime }: IdentityProvider, discovery: Discovery | undefined) {
  await tx.run(sql`
    UPDATE identity_providers SET discovery = ${discoveryText(discovery)} WHERE uid = ${uid} AND update_time = ${updateTime}`)
}

/** Provider with the name of its organization. `verified` is 1 if the operator has verified the organization. */
export type NamedProvider = { uid: string; name: string; organization: string; verified: number }

/** Up to 20 providers of the organization with this name, the oldest first. */
export async function providersOfNamed(reader: Reader, name: string): Promise<NamedProvider[]> {
  return reader.all(sql`${named} WHERE g.parent_uid = ${top} AND g.name = ${name} ${oldest}`)
}

/** Up to 20 providers of the organization with this uid, the oldest first. */
export async function providersOf(reader: Reader, organization: string): Promise<NamedProvider[]> {
  return reader.all(sql`${named} WHERE g.uid = ${organization} ${oldest}`)
}

const named = sql`
  SELECT t.uid, t.name, g.name AS organization, g.verified
    FROM groups g JOIN identity_providers t ON t.parent_uid = g.uid`
const oldest = sql`ORDER BY t.create_time, t.uid LIMIT 20`

/** Uid of the oldest provider of the verified organization with this name. */
export async function providerOfVerified(reader: Reader, name: string): Promise<string | undefined> {
  const row = await reader.get<{ uid: string }>(sql`
    SELECT t.uid FROM groups g JOIN identity_providers t ON t.parent_uid = g.uid
     WHERE g.parent_uid = ${top} AND g.name = ${name} AND g.verified = 1
     ORDER BY t.create_time, t.uid LIMIT 1`)
  return row?.uid
}

/** Encrypted client secret. Empty if the provider has none. */
export async function encryptedSecretOf(reader: Reader, uid: string): Promise<Uint8Array> {
  const row = await reader.get<{ secret: Uint8Array }>(
    sql`SELECT client_secret AS secret FROM identity_providers WHERE uid = ${uid}`,
  )
  return row?.secret ?? new Uint8Array()
}

export async function isDefaultRole(reader: Reader, role: string): Promise<boolean> {
  return exists(reader, sql`FROM identity_providers WHERE default_role = ${role}`)
}

export async function saveSettings(tx: Tx, provider: string, settings: ScimSettings): Promise<void> {
  await tx.run(sql`UPDATE identity_providers SET scim = ${JSON.stringify(settings)} WHERE uid = ${provider}`)
}
