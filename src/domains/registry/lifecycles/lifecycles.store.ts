import { join, list, type Reader, sql, type Tx } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { namesOf, type Product, type Release } from './lifecycles.model.ts'

type ReleaseRow = Omit<Release, 'ended' | 'lts' | 'broken' | 'fips'> & {
  product: string
  ended: number
  lts: number
  broken: number
  fips: number
}

const columns = sql`
  l.product, l.cycle, l.release_date AS "releaseDate", l.eol_date AS "eolDate", l.ended, l.lts, l.lts_date AS "ltsDate",
  l.latest, l.broken, l.fips`

function fromRow({ product: _, ...row }: ReleaseRow): Release {
  return { ...row, ended: row.ended === 1, lts: row.lts === 1, broken: row.broken === 1, fips: row.fips === 1 }
}

type StoredNames = Pick<Product, 'aliases' | 'purls'>

/** Stored products by name. Products that are not stored are left out. */
export async function findProducts(reader: Reader, names: readonly string[]): Promise<Map<string, Product>> {
  const products = await reader.all<{ name: string; label: string; names: string }>(sql`
    SELECT name, label, names FROM lifecycle_products WHERE name IN (${list(names)})`)
  const found = new Map(
    products.map(({ name, label, names: stored }): [string, Product] => {
      return [name, { name, label, ...(JSON.parse(stored) as StoredNames), releases: [] }]
    }),
  )
  const rows = await reader.all<ReleaseRow>(sql`
    SELECT ${columns} FROM lifecycles l WHERE l.product IN (${list(names)}) ORDER BY l.product, l.place`)
  for (const row of rows) found.get(row.product)?.releases.push(fromRow(row))
  return found
}

const rowsAtOnce = 200

/** Replaces all stored data of the product. */
export async function saveProduct(tx: Tx, product: Product, now: string): Promise<void> {
  const { name, label, aliases, purls, releases } = product
  const names = JSON.stringify({ aliases, purls } satisfies StoredNames)
  await tx.run(sql`
    INSERT INTO lifecycle_products (name, label, names, update_time) VALUES (${name}, ${label}, ${names}, ${now})
        ON CONFLICT (name) DO UPDATE SET label = excluded.label, names = excluded.names,
           update_time = excluded.update_time`)
  await tx.run(sql`DELETE FROM lifecycle_names WHERE product = ${name}`)
  await tx.run(sql`DELETE FROM lifecycles WHERE product = ${name}`)
  for (const some of chunks(namesOf(product), rowsAtOnce)) {
    const rows = some.map((one) => sql`(${one.name}, ${name}, ${one.rank})`)
    await tx.run(sql`INSERT INTO lifecycle_names (name, product, rank) VALUES ${join(rows, ', ')}`)
  }
  for (const some of chunks([...releases.entries()], rowsAtOnce)) {
    const rows = some.map(([position, one]) => {
      return sql`(${name}, ${one.cycle}, ${position}, ${one.releaseDate}, ${one.eolDate}, ${Number(one.ended)},
        ${Number(one.lts)}, ${one.ltsDate}, ${one.latest}, ${Number(one.broken)}, ${Number(one.fips)})`
    })
    await tx.run(sql`
      INSERT INTO lifecycles (product, cycle, place, release_date, eol_date, ended, lts, lts_date, latest, broken, fips)
      VALUES ${join(rows, ', ')}`)
  }
}

/** Products with one of these names. Each row has one matching name. */
export async function productsNamed(reader: Reader, names: readonly string[]) {
  if (names.length === 0) return []
  return reader.all<{ name: string; product: string; rank: number }>(sql`
    SELECT name, product, rank FROM lifecycle_names WHERE name IN (${list(names)}) ORDER BY name, rank, product`)
}

/** Names of a product, the best first. */
export async function namesOfProduct(reader: Reader, product: string): Promise<string[]> {
  const rows = await reader.all<{ name: string }>(sql`
    SELECT name FROM lifecycle_names WHERE product = ${product} ORDER BY rank, name`)
  return rows.map(({ name }) => name)
}

export async function releasesOf(reader: Reader, product: string): Promise<Release[]> {
  const rows = await reader.all<ReleaseRow>(sql`
    SELECT ${columns} FROM lifecycles l WHERE l.product = ${product} ORDER BY l.place`)
  return rows.map(fromRow)
}

/** Time of the last import of the product. Returns undefined if there was none. */
export async function updateTimeOf(reader: Reader, product: string): Promise<string | undefined> {
  const row = await reader.get<{ time: string }>(sql`
    SELECT update_time AS time FROM lifecycle_products WHERE name = ${product}`)
  return row?.time
}

/** Names of the release lines of a product of which a known image has a release. */
export async function cyclesInUse(reader: Reader, product: string): Promise<Set<string>> {
  const rows = await reader.all<{ cycle: string }>(sql`
    SELECT DISTINCT cycle FROM main_packages WHERE product = ${product} AND product <> ''`)
  return new Set(rows.map(({ cycle }) => cycle))
}

/** Time of the last import. It changes whenever names or release lines of a product change. */
export async function lastUpdate(reader: Reader): Promise<string> {
  const row = await reader.get<{ time: string | null }>(sql`SELECT max(update_time) AS time FROM lifecycle_products`)
  return row?.time ?? ''
}

/** Tags of the later builds of the same version, at most `most`. */
export async function laterEpochs(reader: Reader, repo: number, prefix: string, after: string, most: number) {
  const rows = await reader.all<{ name: string }>(sql`
    SELECT name FROM tags
     WHERE repo_id = ${repo} AND name > ${prefix} AND name < ${`${prefix}:`} AND length(name) >= ${after.length}
       AND name <> ${after} AND digest <> ''
     ORDER BY length(name) DESC, name DESC LIMIT ${most}`)
  return rows.map(({ name }) => name)
}

/** Tag as the background job reads it. */
export type JudgedTag = {
  uid: string
  repo: number
  name: string
  digest: string
  deprecated: boolean
  inactive: boolean
}

/** Tags after the uid `after`, by uid. */
export async function tagsAfter(reader: Reader, after: string, most: number): Promise<JudgedTag[]> {
  const rows = await reader.all<Omit<JudgedTag, 'deprecated' | 'inactive'> & { deprecated: number; inactive: number }>(
    sql`SELECT uid, repo_id AS repo, name, digest, deprecated, inactive FROM tags
         WHERE uid > ${after} ORDER BY uid LIMIT ${most}`,
  )
  return rows.map((row) => ({ ...row, deprecated: row.deprecated === 1, inactive: row.inactive === 1 }))
}

/** Main package of an image. The texts are empty if it is unknown. */
export type StoredMain = {
  digest: string
  basis: string
  name: string
  version: string
  product: string
  cycle: string
}

/** Stored main packages of the given digests. Digests that were not examined are left out. */
export async function findMains(reader: Reader, repo: number, digests: readonly string[]): Promise<StoredMain[]> {
  return reader.all<StoredMain>(sql`
    SELECT digest, basis, name, version, product, cycle FROM main_packages
     WHERE repo_id = ${repo} AND digest IN (${list(digests)})`)
}

/** Stores main packages. Does nothing if the repository was deleted meanwhile. */
export async function saveMains(tx: Tx, repo: number, mains: readonly StoredMain[]): Promise<void> {
  const isThere = await tx.get(sql`SELECT 1 AS found FROM repos WHERE id = ${repo}`)
  if (!isThere || mains.length === 0) return
  const rows = mains.map((one) => {
    return sql`(${repo}, ${one.digest}, ${one.basis}, ${one.name}, ${one.version}, ${one.product}, ${one.cycle})`
  })
  await tx.run(sql`
    INSERT INTO main_packages (repo_id, digest, basis, name, version, product, cycle) VALUES ${join(rows, ', ')}
        ON CONFLICT (repo_id, digest) DO UPDATE SET basis = excluded.basis, name = excluded.name,
           version = excluded.version, product = excluded.product, cycle = excluded.cycle`)
}
