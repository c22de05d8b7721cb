// Loads what the search index found.
import { join, list, type Reader, sql } from '#db/sql.ts'

export type NodeRow = { id: number; uid: string; name: string; detail: string; updateTime: string }

export function groupsOf(reader: Reader, ids: readonly number[]): Promise<NodeRow[]> {
  return reader.all(sql`
    SELECT id, uid, name, description AS detail, update_time AS "updateTime" FROM groups WHERE id IN (${list(ids)})`)
}

/** Repositories, without those that are being removed. */
export function reposOf(reader: Reader, ids: readonly number[]): Promise<NodeRow[]> {
  return reader.all(sql`
    SELECT id, uid, name, description AS detail, update_time AS "updateTime" FROM repos
     WHERE id IN (${list(ids)}) AND ledger_id IS NOT NULL`)
}

export function identitiesOf(reader: Reader, ids: readonly number[]): Promise<NodeRow[]> {
  return reader.all(sql`
    SELECT id, uid, name, description AS detail, update_time AS "updateTime" FROM identities WHERE id IN (${list(ids)})`)
}

/** Role binding of a person, with the person. */
export type PersonRow = NodeRow & { bindingUid: string }

/** People with an accepted role binding. `detail` is the email address. */
export function personsOf(reader: Reader, bindings: readonly number[]): Promise<PersonRow[]> {
  return reader.all(sql`
    SELECT b.id, b.uid AS "bindingUid", i.uid, i.name, coalesce(i.email, '') AS detail, i.update_time AS "updateTime"
      FROM role_bindings b JOIN identities i ON i.uid = b.identity_uid
     WHERE b.id IN (${list(bindings)}) AND b.accepted = 1`)
}

/** All accepted role bindings of some people. */
export function bindingsOf(
  reader: Reader,
  identities: readonly string[],
): Promise<{ id: number; uid: string; identity: string }[]> {
  return reader.all(sql`
    SELECT id, uid, identity_uid AS identity FROM role_bindings
     WHERE identity_uid IN (${list(identities)}) AND accepted = 1`)
}

export type TagRow = NodeRow & { repo: string; digest: string }

/** Tags of repositories that are not being removed. */
export function tagsOf(reader: Reader, ids: readonly number[]): Promise<TagRow[]> {
  return reader.all(sql`
    SELECT t.id, t.uid, t.name, '' AS detail, t.update_time AS "updateTime", r.uid AS repo, t.digest
      FROM tags t JOIN repos r ON r.id = t.repo_id AND r.ledger_id IS NOT NULL
     WHERE t.id IN (${list(ids)})`)
}

export type ManifestRow = { key: string; tie: number; repo: string; mediaType: string; createTime: string }

/** Manifests by their digest, which begins with `start`, in repositories that are not being removed. */
export function manifestsFrom(
  reader: Reader,
  start: string,
  after: { key: string; tie: string | number } | undefined,
  most: number,
): Promise<ManifestRow[]> {
  const from = after ? sql`(m.digest, m.repo_id) > (${after.key}, ${after.tie})` : sql`m.digest >= ${start}`
  return reader.all(sql`
    SELECT m.digest AS key, m.repo_id AS tie, CASE WHEN r.ledger_id IS NULL THEN '' ELSE r.uid END AS repo,
           m.media_type AS "mediaType", m.create_time AS "createTime"
      FROM (SELECT digest, repo_id, media_type, create_time FROM manifests m
             WHERE ${from} AND m.digest < ${`${start}g`} ORDER BY m.digest, m.repo_id LIMIT ${most}) AS m
      JOIN repos r ON r.id = m.repo_id
     ORDER BY m.digest, m.repo_id`)
}

export function packageNames(reader: Reader, ids: readonly number[]): Promise<{ id: number; name: string }[]> {
  return reader.all(sql`SELECT id, name FROM search_packages WHERE id IN (${list(ids)})`)
}

/** Limits on the rows that are read to find an image with a package. */
const mostComponents = 200
const mostLists = 20
const mostRows = 5000

export type PackageList = { listNo: number; ecosystem: string; version: string }

/** Some package lists that contain a package, the newest versions first. Empty `organizations` mean all organizations. */
export function listsWithPackage(
  reader: Reader,
  organizations: readonly string[],
  name: string,
): Promise<PackageList[]> {
  const ofThem =
    organizations.length === 0
      ? sql``
      : sql`
      JOIN search_lists s ON s.list_id = f."listNo"
      JOIN groups g ON g.id = s.org_id AND g.uid IN (${list(organizations)})`
  return reader.all(sql`
    SELECT f."listNo", f.ecosystem, f.version
      FROM (SELECT l.list_id AS "listNo", c.ecosystem, c.version
              FROM (SELECT id, ecosystem, version FROM components WHERE name = ${name} ORDER BY id DESC
                     LIMIT ${mostComponents}) AS c
              JOIN list_components l ON l.component_id = c.id
             LIMIT ${mostRows}) AS f ${ofThem}
     LIMIT ${mostLists}`)
}

/** Names of vulnerabilities in a range, in order. */
export async function vulnerabilityNames(
  reader: Reader,
  start: string,
  after: string,
  most: number,
): Promise<string[]> {
  const from = after > start ? sql`name > ${after}` : sql`name >= ${start}`
  const rows = await reader.all<{ name: string }>(sql`
    SELECT DISTINCT name FROM vulnerability_record_names
     WHERE ${from} AND name < ${`${start}\u{10ffff}`} ORDER BY name LIMIT ${most}`)
  return rows.map(({ name }) => name)
}

/** Current records of vulnerabilities: of the data sources, and of the advisories of these organizations. */
export function summariesOf(
  reader: Reader,
  names: readonly string[],
  { own, organizations, isAll }: { own: string; organizations: readonly string[]; isAll: boolean },
): Promise<{ name: string; summary: string }[]> {
  const isShown = isAll
    ? sql``
    : sql`
       AND (s.name <> ${own} OR EXISTS (SELECT 1 FROM affected_packages a
                                          WHERE a.record_no = r.id AND a.place IN (${list(['', ...organizations])})))`
  return reader.all(sql`
    SELECT n.name, r.summary
      FROM vulnerability_record_names n
      JOIN vulnerability_records r ON r.id = n.record_no AND r.until_time = ''
      JOIN vulnerability_sources s ON s.id = r.source_id
     WHERE n.name IN (${list(names)}) ${isShown}`)
}

/** Repositories with these uids. Uids of other resources are left out. */
export function reposNamed(reader: Reader, uids: readonly string[]): Promise<NodeRow[]> {
  return reader.all(sql`
    SELECT id, uid, name, description AS detail, update_time AS "updateTime" FROM repos
     WHERE uid IN (${list(uids)}) AND ledger_id IS NOT NULL`)
}

/** Repositories below a group, the newest first; at most `most`. */
export async function reposBelow(reader: Reader, group: string, most: number): Promise<number[]> {
  const rows = await reader.all<{ id: number }>(sql`
    SELECT id FROM repos WHERE uid >= ${group} AND uid < ${`${group}0`} LIMIT ${most}`)
  return rows.map(({ id }) => id)
}

/** Repositories by number. */
export function repoUids(reader: Reader, ids: readonly number[]): Promise<{ id: number; uid: string }[]> {
  return reader.all(sql`
    SELECT id, uid FROM repos WHERE id IN (${list(ids)}) AND ledger_id IS NOT NULL ORDER BY id DESC`)
}

/** Organizations after a uid, in order. */
export async function organizationsAfter(reader: Reader, after: string, most: number): Promise<string[]> {
  const rows = await reader.all<{ uid: string }>(sql`
    SELECT uid FROM groups WHERE parent_uid = '/' AND uid > ${after} ORDER BY uid LIMIT ${most}`)
  return rows.map(({ uid }) => uid)
}

/** Tags by name in the lists of some scopes, in order. `names` are ranges or whole names. */
export async function tagKeys(
  reader: Reader,
  scopes: readonly string[],
  { shapes, names, isWhole }: { shapes: readonly number[]; names: readonly string[]; isWhole: boolean },
  after: { key: string; tie: string | number } | undefined,
  most: number,
): Promise<{ key: string; tie: string; id: number }[]> {
  const each = scopes.flatMap((scope) =>
    shapes.flatMap((shape) =>
      names.map((name) => {
        const from =
          after && after.key >= name ? sql`(value, uid) > (${after.key}, ${after.tie})` : sql`value >= ${name}`
        const upTo = isWhole ? sql`value <= ${name}` : sql`value < ${`${name}\u{10ffff}`}`
        return sql`SELECT * FROM (
          SELECT value AS key, uid AS tie, id FROM list_keys
           WHERE list = ${`tags.${shape}.name`} AND place = ${scope} AND ${from} AND ${upTo}
           ORDER BY value, uid LIMIT ${most}) AS matches`
      }),
    ),
  )
  return reader.all(sql`${join(each, ' UNION ALL ')} ORDER BY key, tie LIMIT ${most}`)
}
