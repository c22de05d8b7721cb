// Stores statements of trusted signers on images. A statement of "not affected" or "fixed" hides a finding until the same signer
// states another status. The statement with the latest time in a signed document is used. So pushing an old document again
// changes nothing.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { canonicalPattern, type PackagePattern, patternOf } from '#contents/package-pattern.ts'
import { aboutImage } from '#contents/reports/vex-about.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import { canonicalName } from '../image-findings/vulnerability-names.service.ts'
import type { StatedVulnerability } from '../scan-reports/scan-reports.model.ts'
import * as store from '../scan-reports/signed-statements.store.ts'
import { mostSigned } from './signers.model.ts'

/** Parsed document with its number, the author and time in the document, and the time of its import. */
export type SignedDocument = {
  id: number
  author: string
  statementTime: string
  createTime: string
  statements: readonly StatedVulnerability[]
}

/**
 * Statement with its package in a form that can be compared. If `pattern` is undefined, the statement can apply to any package of
 * the image.
 */
export type PreparedStatement = store.SignedStatement & { pattern: PackagePattern | undefined }

/** Maps the name of a vulnerability in a document to the ID under which reports of the repository count the vulnerability. */
export type Names = (name: string) => Promise<string>

const mostNames = 20_000

export function createNames(reader: Reader, repoUid: string): Names {
  const known = new Map<string, string>()
  return async (name) => {
    // Valid documents have fewer names than this limit.
    const found =
      known.get(name) ?? (known.size < mostNames ? await canonicalName(reader, name, [rootOf(repoUid)]) : name)
    if (known.size < mostNames) known.set(name, found)
    return found
  }
}

const atOnce = 50

/**
 * Statements of a document on an image. `digests` are the digests under which the document can name the image. Statements that do
 * not hide findings come first.
 */
export async function signedIn(
  names: Names,
  digests: readonly string[],
  { id, author, statementTime, createTime, statements }: SignedDocument,
): Promise<PreparedStatement[]> {
  const all = new Map<string, PreparedStatement>()
  const numbered = statements.map((one, i) => ({ one, number: i + 1 }))
  const inOrder = [
    ...numbered.filter(({ one }) => !hidesFinding(one)),
    ...numbered.filter(({ one }) => hidesFinding(one)),
  ]
  for (const [i, { one, number }] of inOrder.entries()) {
    if (i % atOnce === 0) await nextTurn()
    const content = [one.status, one.justification, one.text].filter(Boolean).join(', ')
    const about = {
      ...{ status: one.status, statement: `${id}.${number}` },
      stated: `${author || 'somebody'}: ${content}`.slice(0, 1000).toWellFormed(),
      // A statement without a time cannot be sorted. If it does not hide findings, the import time is used, so that findings are
      // shown in case of doubt.
      statementTime: hidesFinding(one) || statementTime !== '' ? statementTime : createTime,
    }
    const packages = packagesOf(one, digests)
    const isMuch = all.size + packages.length > mostSigned.ofImage
    if (packages.length === 0 || (isMuch && hidesFinding(one))) continue
    // A statement that hides findings applies only to the vulnerability that it names, not to its aliases.
    const named = await Promise.all(
      (hidesFinding(one) ? [one.vulnerability] : [one.vulnerability, ...one.aliases]).map(async (name) => names(name)),
    )
    for (const vulnerability of new Set(named)) {
      for (const text of isMuch ? [''] : packages) {
        const key = JSON.stringify([vulnerability, text])
        const pattern = text === '' ? undefined : patternOf(text)
        if (!all.has(key)) all.set(key, { ...about, vulnerability, package: text, pattern })
      }
    }
  }
  return [...all.values()]
}

/**
 * Packages of a statement. The empty text means the whole image. If a product is not a package, a statement that hides findings
 * does not apply to this product. Any other statement then applies to the whole image.
 */
function packagesOf(one: StatedVulnerability, digests: readonly string[]): string[] {
  const { image, parts } = aboutImage(one, ...digests)
  if (image) return ['']
  const texts = new Set(parts.map((part) => canonicalPattern(part) ?? ''))
  if (hidesFinding(one)) texts.delete('')
  return [...texts]
}

const hidesFinding = ({ status }: Pick<store.SignedStatement, 'status'>): boolean =>
  status === 'not_affected' || status === 'fixed'

/**
 * Applies some statements of a signer on an image, with at most `room` new rows. A statement that stops hiding a finding is
 * always stored. Otherwise an older document could hide the finding later. Returns the number of added rows. `hadRoom` is false
 * if a statement that hides findings was left out.
 */
export async function takeSigned(
  tx: Tx,
  image: store.ImageIn,
  signer: string,
  signed: readonly PreparedStatement[],
  { now, room }: { now: string; room: number },
): Promise<{ added: number; hadRoom: boolean }> {
  const names = [...new Set(signed.map(({ vulnerability }) => vulnerability))]
  const current = new EarlierStatements(await store.activeStatements(tx, image, signer, names))
  const taken = { added: 0, hadRoom: true }
  for (const one of signed) {
    const same = current.same(one)
    const isPast = same !== undefined && isLater(same, one)
    if (
      hidesFinding(one) &&
      (isPast || current.some(one, (other) => !hidesFinding(other) && other.statementTime >= one.statementTime))
    )
      continue
    const keeps = same !== undefined && (isPast || hasSameContent(same, one))
    const ended = current.all(one, (other) => {
      return other === same
        ? !keeps
        : !hidesFinding(one) && hidesFinding(other) && other.statementTime <= one.statementTime
    })
    for (const other of ended) {
      await store.endSigned(tx, other.id, now)
      current.delete(other)
    }
    if (isPast) continue
    if (keeps) {
      if (same.statementTime !== one.statementTime) await store.noteStatementTime(tx, same.id, one.statementTime)
      same.statementTime = one.statementTime
    } else if (taken.added < room || (!hidesFinding(one) && ended.some(hidesFinding))) {
      taken.added++
      current.add({ ...one, id: await store.insertSigned(tx, image, signer, one, now) })
    } else taken.hadRoom &&= !hidesFinding(one)
  }
  return taken
}

/** A statement with the same time but another text is not a newer statement. */
const hasSameContent = (before: store.SignedStatement, one: store.SignedStatement): boolean =>
  before.status === one.status && (before.stated === one.stated || before.statementTime === one.statementTime)

/** If the times are equal, a statement that does not hide the finding has precedence. */
const isLater = (before: store.SignedStatement, one: store.SignedStatement): boolean =>
  before.statementTime > one.statementTime ||
  (before.statementTime === one.statementTime && hidesFinding(one) && !hidesFinding(before))

type Row = store.ActiveStatement & PreparedStatement

/** Current statements of a signer on some vulnerabilities in an image. */
class EarlierStatements {
  /** Rows by vulnerability, then by package without version (empty for any package), then by package as stored. */
  readonly #rows = new Map<string, Map<string, Map<string, Row>>>()

  constructor(rows: readonly store.ActiveStatement[]) {
    for (const row of rows) this.add({ ...row, pattern: row.package === '' ? undefined : patternOf(row.package) })
  }

  add(row: Row): void {
    const ofName = this.#rows.get(row.vulnerability) ?? new Map<string, Map<string, Row>>()
    const ofPackage = ofName.get(keyOf(row)) ?? new Map<string, Row>()
    this.#rows.set(row.vulnerability, ofName.set(keyOf(row), ofPackage.set(row.package, row)))
  }

  delete(row: Row): void {
    this.#rows.get(row.vulnerability)?.get(keyOf(row))?.delete(row.package)
  }

  same(one: PreparedStatement): Row | undefined {
    return this.#rows.get(one.vulnerability)?.get(keyOf(one))?.get(one.package)
  }

  some(one: PreparedStatement, is: (row: Row) => boolean): boolean {
    for (const row of this.#overlapping(one)) if (is(row)) return true
    return false
  }

  all(one: PreparedStatement, is: (row: Row) => boolean): Row[] {
    return [...this.#overlapping(one)].filter(is)
  }

  /** Statements that may be about the same package. */
  *#overlapping(one: PreparedStatement): Generator<Row> {
    const ofName = this.#rows.get(one.vulnerability)
    const keys = keyOf(one) === '' ? [...(ofName?.keys() ?? [])] : [keyOf(one), '']
    for (const key of keys) {
      for (const row of ofName?.get(key)?.values() ?? []) if (mayBeSame(row.pattern, one.pattern)) yield row
    }
  }
}

const keyOf = ({ pattern }: Pick<PreparedStatement, 'pattern'>): string =>
  pattern ? `${pattern.kind} ${pattern.name}` : ''

function mayBeSame(a: PackagePattern | undefined, b: PackagePattern | undefined): boolean {
  if (!a || !b) return true
  const fits = (one: string, other: string) => one === '' || other === '' || one === other
  return fits(a.version, b.version) && fits(a.distribution, b.distribution)
}
