import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { type FieldViolation, found, invalid, refuseIfAny } from '#lib/errors.ts'
import { violationsOf } from '#lib/fields.ts'
import { rootOf } from '#lib/uid.ts'
import { packageType } from '../images/images.model.ts'
import { findSettings } from '../settings/settings.store.ts'
import { graceEnd, hasEnded, isDay, supportStateOf } from './end-of-life.model.ts'
import { maxListed, maxProducts, type Product, productFields, type Release, releaseFields } from './lifecycles.model.ts'
import * as store from './lifecycles.store.ts'
import { findMains, releasesOf } from './lifecycles.store.ts'
import { productOf } from './main-packages.service.ts'

export type ImportCounts = { created: number; updated: number; unchanged: number }

/** Imports all products, or none if one of them is invalid. Existing products are replaced unless they are equal. */
export async function importProducts(call: Call, products: readonly Product[]): Promise<ImportCounts> {
  checkImport(products)
  const counts = await call.app.db.tx(async (tx) => {
    const names = products.map(({ name }) => name)
    const known = await store.findProducts(tx, names)
    const saved = products.filter((one) => textOf(known.get(one.name)) !== textOf(one))
    for (const one of saved) await store.saveProduct(tx, one, call.now)
    const updated = saved.filter(({ name }) => known.has(name)).length
    return { created: saved.length - updated, updated, unchanged: products.length - saved.length }
  })
  call.log.info('lifecycles imported', counts)
  return counts
}

export type PackageLines = {
  /**
   * Release lines, the newest first. `ended` are lines that have ended on a known day, and `alive` are lines that have not ended.
   */
  ended: Release[]
  alive: Release[]
  /** Names of the release lines of which a known image has a release. */
  inUse: ReadonlySet<string>
  updateTime: string
}

/** Release lines of the product that a package belongs to. */
export async function linesOf(call: Call, name: string): Promise<PackageLines> {
  const { db } = call.app
  const product = await productOf(db, name)
  const updateTime = found(product === '' ? undefined : await store.updateTimeOf(db, product), packageType, name)
  const releases = await store.releasesOf(db, product)
  const [ended, alive] = [true, false].map((state) => releases.filter((one) => hasEnded(one, call.now) === state))
  return {
    ended: ended!.filter(({ eolDate }) => eolDate !== ''),
    alive: alive!,
    inUse: await store.cyclesInUse(db, product),
    updateTime,
  }
}

/** Text for comparing products. Equal products have the same text. */
function textOf(product: Product | undefined): string | undefined {
  if (!product) return undefined
  const { name, label, aliases, purls, releases } = product
  const lines = releases.map((one) => [
    ...[one.cycle, one.releaseDate, one.eolDate, one.ended, one.lts, one.ltsDate, one.latest, one.broken, one.fips],
  ])
  return JSON.stringify([name, label, aliases, purls, lines])
}

function checkImport(products: readonly Product[]): void {
  if (products.length === 0) throw invalid({ field: 'products', description: 'is required' })
  if (products.length > maxProducts) {
    throw invalid({ field: 'products', description: `must have at most ${maxProducts} products` })
  }
  const names = new Set<string>()
  refuseIfAny(
    products.flatMap((one, i) => {
      const problems = problemsOf(one)
      if (names.has(one.name)) problems.push({ field: 'name', description: 'is listed twice' })
      names.add(one.name)
      return problems.map(({ field, description }) => ({ field: `products[${i}].${field}`, description }))
    }),
  )
}

function problemsOf(product: Product): FieldViolation[] {
  const problems = violationsOf<Product>(productFields, product)
  for (const member of ['aliases', 'purls', 'releases'] as const) {
    if (product[member].length > maxListed) {
      problems.push({ field: member, description: `must have at most ${maxListed} entries` })
    }
  }
  const cycles = new Set<string>()
  for (const [i, release] of product.releases.entries()) {
    const found = violationsOf<Release>(releaseFields, release)
    for (const member of ['releaseDate', 'eolDate', 'ltsDate'] as const) {
      const day = release[member]
      const isKnown = found.some(({ field }) => field === releaseFields[member].column)
      if (day !== '' && !isKnown && !isDay(day)) {
        found.push({ field: releaseFields[member].column, description: 'must be a date such as 2026-08-01' })
      }
    }
    if (cycles.has(release.cycle)) found.push({ field: 'cycle', description: 'is listed twice' })
    cycles.add(release.cycle)
    problems.push(...found.map(({ field, description }) => ({ field: `releases[${i}].${field}`, description })))
  }
  return problems
}

/**
 * `line` is the product with its line, such as `nodejs 22`. `ended` ignores grace periods. `over` includes the grace period of
 * the organization, and is true from `overSince` on. `eolDate` is a day. Unknown values are empty.
 */
export type Support = { line: string; eolDate: string; ended: boolean; over: boolean; overSince: string }

/**
 * Support status of an image. Returns `undefined` while the image is queued for examination, and `unknown` if its line is not
 * known.
 */
export async function supportOf(
  reader: Reader,
  repo: { id: number; uid: string },
  digest: string,
  now: string,
): Promise<Support | 'unknown' | undefined> {
  const [main] = await findMains(reader, repo.id, [digest])
  if (!main) return undefined
  const { product, cycle } = main
  const releases = product === '' || cycle === '' ? [] : await releasesOf(reader, product)
  const release = releases.find((one) => one.cycle === cycle)
  if (!release) return 'unknown'
  const grace = (await findSettings(reader, rootOf(repo.uid)))?.eolGracePeriod ?? false
  const { tagStatus } = supportStateOf({ now, release, grace, rebuilt: true })
  const { eolDate, broken } = release
  const overSince = eolDate !== '' && grace && !broken ? graceEnd(eolDate) : eolDate
  const over = tagStatus === 'inactive'
  return { line: `${product} ${cycle}`, eolDate, ended: hasEnded(release, now), over, overSince }
}
