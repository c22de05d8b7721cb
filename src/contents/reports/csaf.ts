// Reader of VEX documents in CSAF 2.0. The document has statements on vulnerabilities in products that it lists. Only the package
// URL and the hashes of a product are used. If a product has neither, its name is used, so that the statement does not apply to
// all products.
import { asObject, type Json, objectsIn, textOf } from '../json.ts'
import { Unreadable } from '../packages.ts'
import { type ScanReport, timeOf } from './scan-report.ts'
import { Statements } from './vex.ts'
import type { VexStatus } from './vex-statement.ts'

export const isCsaf = (document: Json): boolean =>
  /^csaf_/.test(textOf(asObject(document.document).category)) && textOf(asObject(document.document).csaf_version) !== ''

/** Name of a product, and the name of the product that contains it. `within` is empty if no product contains it. */
type Product = { name: string; within: string }

const statuses: Readonly<Record<string, VexStatus>> = {
  ...{ known_not_affected: 'not_affected', fixed: 'fixed', first_fixed: 'fixed' },
  ...{ known_affected: 'affected', first_affected: 'affected', last_affected: 'affected' },
  ...{ under_investigation: 'under_investigation' },
}
const most = { products: 20_000, groups: 1000, named: 200_000, statements: 100, texts: 20, text: 2000 }

export function readCsaf(document: Json): ScanReport {
  const head = asObject(document.document)
  if (head.category !== 'csaf_vex')
    throw new Unreadable('UNSUPPORTED', 'the CSAF document does not have the category csaf_vex')
  const tracking = asObject(head.tracking)
  if (tracking.status === 'draft') throw new Unreadable('UNSUPPORTED', 'the CSAF document is a draft')
  const products = productsIn(asObject(document.product_tree))
  const groups = groupsIn(asObject(document.product_tree))
  const gathered = new Statements()
  for (const one of objectsIn(document.vulnerabilities)) addStatements(gathered, one, products, groups)
  return {
    format: 'csaf',
    tool: { name: textOf(asObject(head.publisher).name), version: textOf(tracking.version) },
    dbBuildTime: timeOf(tracking.current_release_date),
    vulnerabilities: [],
    statements: gathered.all(),
  }
}

/** Adds statements. Products with the same status and reason become one statement. */
function addStatements(
  gathered: Statements,
  one: Json,
  products: ReadonlyMap<string, readonly Product[]>,
  groups: ReadonlyMap<string, readonly string[]>,
): void {
  const ids = objectsIn(one.ids).map(({ text }) => textOf(text))
  const [vulnerability = '', ...aliases] = [textOf(one.cve), ...ids].filter((id) => id !== '')
  const flags = reasonsOf(one.flags, groups, ({ label }) => textOf(label))
  const impacts = objectsIn(one.threats).filter(({ category }) => category === 'impact')
  const texts = reasonsOf([...impacts, ...objectsIn(one.remediations)], groups, ({ details }) => textOf(details))
  for (const [member, ids] of Object.entries(asObject(one.product_status))) {
    const status = statuses[member]
    if (status === undefined) continue
    const byReason = Map.groupBy(textsIn(ids), (id) => JSON.stringify([flags(id), texts(id)]))
    for (const [reason, same] of byReason) {
      const [[justification = ''], text] = JSON.parse(reason) as [string[], string[]]
      const named = same.flatMap((id) => products.get(id) ?? [{ name: id, within: '' }])
      // If a statement has too many products, the remaining ones become another statement.
      for (let from = 0; from < named.length; from += most.statements) {
        const some = named.slice(from, from + most.statements)
        gathered.add({
          ...{ vulnerability, aliases, status, justification, text: text.join(' ') },
          products: some.map(({ name }) => name),
          ...(some.some(({ within }) => within !== '') && { within: some.map(({ within }) => within) }),
        })
      }
    }
  }
}

/**
 * Reasons for each product. A reason names products by id, or names a group of products. A reason without products applies to all
 * products.
 */
function reasonsOf(value: unknown, groups: ReadonlyMap<string, readonly string[]>, textIn: (one: Json) => string) {
  const general: string[] = []
  const byProduct = new Map<string, string[]>()
  let named = 0
  for (const one of objectsIn(value)) {
    const text = textIn(one).slice(0, most.text)
    if (text === '') continue
    const ids = [...textsIn(one.product_ids), ...textsIn(one.group_ids).flatMap((id) => groups.get(id) ?? [])]
    named += ids.length
    if (named > most.named) throw tooMany('reasons of products', most.named)
    if (ids.length === 0 && one.product_ids === undefined && one.group_ids === undefined) general.push(text)
    for (const id of ids) {
      const knownTexts = byProduct.get(id) ?? []
      if (knownTexts.length < most.texts && !knownTexts.includes(text)) knownTexts.push(text)
      byProduct.set(id, knownTexts)
    }
  }
  return (id: string): string[] => [...(byProduct.get(id) ?? []), ...general.slice(0, most.texts)]
}

function groupsIn(tree: Json): Map<string, string[]> {
  const groups = objectsIn(tree.product_groups)
  if (groups.length > most.groups) throw tooMany('product groups', most.groups)
  return new Map(groups.map((group) => [textOf(group.group_id), textsIn(group.product_ids)]))
}

/** Products of a document by their ids. A component of a product has that product in `within`. */
function productsIn(tree: Json): Map<string, Product[]> {
  const found = new Map<string, Product[]>()
  const add = (product: Json, names: readonly string[], within = ''): void => {
    const id = textOf(product.product_id)
    if (id === '') return
    if (found.size >= most.products) throw tooMany('products', most.products)
    found.set(
      id,
      names.map((name) => ({ name, within })),
    )
  }
  // Branches can be nested too deeply for recursion.
  const left = [objectsIn(tree.branches)]
  for (let some = left.pop(); some; some = left.pop()) {
    for (const { branches, product } of some) {
      if (branches !== undefined) left.push(objectsIn(branches))
      if (product !== undefined) add(asObject(product), namesOf(asObject(product)))
    }
  }
  for (const product of objectsIn(tree.full_product_names)) add(product, namesOf(product))
  for (const { product_reference: part, relates_to_product_reference: whole, full_product_name } of objectsIn(
    tree.relationships,
  )) {
    const names = (found.get(textOf(part)) ?? []).map(({ name }) => name)
    const [{ name: within } = { name: '?' }] = found.get(textOf(whole)) ?? []
    add(asObject(full_product_name), names.length > 0 ? names : [textOf(part) || '?'], within)
  }
  return found
}

/** Package URL or hashes of a product. If it has neither, its name. */
function namesOf(product: Json): string[] {
  const { purl, purls, hashes } = asObject(product.product_identification_helper)
  const hashed = objectsIn(hashes)
    .flatMap(({ file_hashes }) => objectsIn(file_hashes))
    .flatMap(({ algorithm, value }) => {
      const isKnown = algorithm === 'sha256' || algorithm === 'sha512'
      return isKnown && /^[0-9a-f]+$/.test(textOf(value)) ? [`@${algorithm}:${value}`] : []
    })
  const named = [textOf(purl), ...textsIn(purls)].filter((name) => name !== '')
  // A package URL is more specific than the hash of the package's file.
  if (named.length > 0) return [...new Set(named)]
  return hashed.length > 0 ? [...new Set(hashed)] : [textOf(product.name) || '?']
}

const textsIn = (value: unknown): string[] => (Array.isArray(value) ? value.map(textOf).filter((id) => id !== '') : [])

const tooMany = (what: string, limit: number): Unreadable =>
  new Unreadable('LIMIT_EXCEEDED', `the document has more than ${limit} ${what}`)
