// Reads VEX statements from OpenVEX documents and from analyses in CycloneDX. A statement says that a vulnerability does not
// affect a product, is fixed or is under investigation.
import { asObject, type Json, objectsIn, textOf } from '../json.ts'
import { Unreadable } from '../packages.ts'
import { type ScanReport, timeOf } from './scan-report.ts'
import { type VexStatement, type VexStatus, vexStatuses } from './vex-statement.ts'

const most = { statements: 5000, products: 100, aliases: 50, text: 2000, name: 1024, characters: 4 * 2 ** 20 }

export const isOpenVex = (document: Json): boolean => /^https:\/\/openvex\.dev\/ns\b/.test(textOf(document['@context']))

/** Reads an OpenVEX document. The report has only statements, because OpenVEX lists no found vulnerabilities. */
export function readOpenVex(document: Json): ScanReport {
  const gathered = new Statements()
  for (const one of objectsIn(document.statements)) {
    const about = productsOf(one.products)
    // Up to OpenVEX 0.0.1, `vulnerability` is the name as a text.
    const named = typeof one.vulnerability === 'string' ? { name: one.vulnerability } : asObject(one.vulnerability)
    gathered.add({
      vulnerability: textOf(named.name) || textOf(named['@id']),
      aliases: textsIn(named.aliases),
      status: textOf(one.status),
      justification: textOf(one.justification),
      text: [one.impact_statement, one.status_notes, one.action_statement].map(textOf).filter(Boolean).join(' '),
      products: about.map(({ name }) => name),
      ...(about.some(({ within }) => within !== '') && { within: about.map(({ within }) => within) }),
    })
  }
  const { author, version } = document
  return {
    format: 'openvex',
    tool: { name: textOf(author), version: typeof version === 'number' ? String(version) : textOf(version) },
    dbBuildTime: timeOf(document.last_updated) || timeOf(document.timestamp),
    vulnerabilities: [],
    statements: gathered.all(),
  }
}

/**
 * Products of a statement. A statement on parts of a product applies neither to the whole product nor to the same parts of
 * another product.
 */
function productsOf(value: unknown): { name: string; within: string }[] {
  const list = Array.isArray(value) ? value : []
  return list.flatMap((one: unknown) => {
    if (typeof one === 'string') return [{ name: one, within: '' }]
    const name = nameOf(asObject(one))
    const parts = objectsIn(asObject(one).subcomponents).map(nameOf)
    // If the product has no name, its parts belong to an unknown product.
    return parts.length > 0 ? parts.map((part) => ({ name: part, within: name || '?' })) : [{ name, within: '' }]
  })
}

const nameOf = (one: Json): string => textOf(asObject(one.identifiers).purl) || textOf(one['@id'])

const analysed: Readonly<Record<string, VexStatus>> = {
  ...{ resolved: 'fixed', resolved_with_pedigree: 'fixed', exploitable: 'affected', in_triage: 'under_investigation' },
  ...{ false_positive: 'not_affected', not_affected: 'not_affected' },
}

/**
 * Reads the analyses in a CycloneDX document. `purlOf` returns the package URL of an element, or an empty text. Statements beyond
 * the limit are left out, because the found vulnerabilities remain. Statements that require an action are the last to be left
 * out.
 */
export function statementsOfCycloneDx(document: Json, purlOf: (reference: string) => string): VexStatement[] {
  const gathered = new Statements()
  const statusOf = ({ analysis }: Json) => analysed[textOf(asObject(analysis).state)]
  const all = objectsIn(document.vulnerabilities).map((one, position) => ({ one, position, status: statusOf(one) }))
  const saysToDo = ({ status }: (typeof all)[number]) => status === 'affected' || status === 'under_investigation'
  const positions: number[] = []
  for (const { one, position, status } of [...all.filter(saysToDo), ...all.filter((each) => !saysToDo(each))]) {
    if (status === undefined) continue
    const { justification, detail } = asObject(one.analysis)
    // If a product has no package URL, its reference is used, so that the statement does not apply to all products.
    const products = objectsIn(one.affects).map(({ ref }) => purlOf(textOf(ref)) || textOf(ref))
    const statement = {
      vulnerability: textOf(one.id),
      aliases: objectsIn(one.references)
        .map(({ id }) => textOf(id))
        .slice(0, most.aliases),
      ...{ status, justification: textOf(justification), text: textOf(detail) },
    }
    // If a statement has too many products, the remaining ones become another statement.
    const some = products.length === 0 ? [[]] : groupsOf(products)
    for (const each of some) if (gathered.addIfMay({ ...statement, products: each })) positions.push(position)
  }
  const ordered = gathered.all().map((statement, i) => ({ statement, position: positions[i]! }))
  return ordered.sort((one, other) => one.position - other.position).map(({ statement }) => statement)
}

const groupsOf = (products: readonly string[]): string[][] =>
  Array.from({ length: Math.ceil(products.length / most.products) }, (_, i) =>
    products.slice(i * most.products, (i + 1) * most.products),
  )

const textsIn = (value: unknown): string[] => (Array.isArray(value) ? value.map(textOf) : [])

/** Collects statements up to the limits. */
export class Statements {
  readonly #all: VexStatement[] = []
  #characters = 0

  /** Adds a statement. Returns false if the statement is invalid or above the limits. */
  addIfMay(given: Parameters<Statements['add']>[0]): boolean {
    try {
      this.add(given)
      return true
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error
      return false
    }
  }

  /** Adds a statement. Throws Unreadable if the statement is invalid or above the limits of real documents. */
  add(given: Omit<VexStatement, 'status'> & { status: string }): void {
    const status = vexStatuses.find((one) => one === given.status)
    if (!/^[\x21-\x7e]{1,128}$/.test(given.vulnerability))
      throw new Unreadable('DAMAGED', 'a statement has no valid vulnerability ID')
    if (!status) throw new Unreadable('DAMAGED', `the statement on ${given.vulnerability} has no valid status`)
    if (given.products.length > most.products || given.aliases.length > most.aliases) {
      throw new Unreadable(
        'LIMIT_EXCEEDED',
        `a statement has more than ${most.products} products or ${most.aliases} aliases`,
      )
    }
    if (this.#all.length >= most.statements) {
      throw new Unreadable('LIMIT_EXCEEDED', `the document has more than ${most.statements} statements`)
    }
    const plain = (text: string, length: number) => {
      const short = text.slice(0, length).replaceAll('\0', '').toWellFormed()
      this.#characters += short.length
      return short
    }
    const one: VexStatement = {
      vulnerability: plain(given.vulnerability, 128),
      aliases: given.aliases.filter((alias) => /^[\x21-\x7e]{1,128}$/.test(alias)).map((alias) => plain(alias, 128)),
      status,
      justification: plain(given.justification, 128),
      text: plain(given.text, most.text),
      products: given.products.map((product) => plain(product, most.name)),
      ...(given.within && { within: given.within.map((product) => plain(product, most.name)) }),
    }
    if (this.#characters > most.characters)
      throw new Unreadable('LIMIT_EXCEEDED', `the texts of the document have more than ${most.characters} characters`)
    this.#all.push(one)
  }

  all(): VexStatement[] {
    return this.#all
  }
}
