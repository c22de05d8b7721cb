// Vulnerabilities that a scanner has found in an image, in a form that is the same for all report formats.
import { type Json, objectsIn, textOf } from '../json.ts'
import { Unreadable } from '../packages.ts'
import type { VexStatement } from './vex-statement.ts'

/** A parsed report, with one entry for each vulnerability. */
export type ScanReport = {
  format: ReportFormat
  /** Tool that made the report, as named in the report. */
  tool: { name: string; version: string }
  /** Build time of the scanner's vulnerability database in ISO 8601. Empty if unknown. */
  dbBuildTime: string
  /** Time at which the report was written, if the format has a separate field for it. */
  writeTime?: string
  /** Vulnerabilities in the order of their ids. */
  vulnerabilities: FoundVulnerability[]
  /** VEX statements in the report. Undefined if there are none. */
  statements?: VexStatement[]
  /** Digests of the subjects if the report is in an in-toto statement. Undefined otherwise. */
  subjects?: string[]
  /** True if the in-toto statement was in an envelope. */
  sealed?: boolean
  /** Number of signatures of the envelope that can be verified. */
  signatures?: number
  /** Note on parts of the report that were left out. */
  note?: string
}

export type ReportFormat = 'grype' | 'trivy' | 'cyclonedx' | 'sarif' | 'harbor' | 'openvex' | 'csaf'

/** A vulnerability with the fields that reports have in version 1 of the API. */
export type FoundVulnerability = {
  id: string
  aliases: string[]
  summary: string
  details: string
  /** Severity number of version 1 of the API. */
  severity: number
  cvss: FoundScore[]
  fix: { state: 0 | 1 | 2 | 3; versions: string[] }
  references: string[]
  locations: string[]
  packages: { purl: string; name: string; version: string }[]
  records: { source: string; id: string; url: string }[]
}

export type FoundScore = {
  source: string
  type: 'CVSS_V2' | 'CVSS_V3' | 'CVSS_V4'
  vector: string
  score?: number
}

/** Numbers of the fix states in version 1 of the API. */
export const fixes = { unknown: 0, fixed: 1, notFixed: 2, wontFix: 3 } as const

/** Fix states by their names in the formats of all scanners. */
export const fixStates: Readonly<Record<string, (typeof fixes)[keyof typeof fixes]>> = {
  fixed: fixes.fixed,
  ...{ affected: fixes.notFixed, fix_deferred: fixes.notFixed, 'not-fixed': fixes.notFixed },
  ...{ will_not_fix: fixes.wontFix, 'wont-fix': fixes.wontFix, end_of_life: fixes.wontFix },
}
const severities: Readonly<Record<string, number>> = {
  ...{ none: 5, negligible: 5, info: 5, informational: 5, low: 1, minor: 1, medium: 2, moderate: 2 },
  ...{ high: 3, important: 3, critical: 4 },
}
/** Severities from the lowest to the highest. The unknown severity comes first, so it never replaces a known one. */
const byWeight = [0, 5, 1, 2, 3, 4]

export const severityOf = (word: unknown): number => severities[textOf(word).toLowerCase()] ?? 0
export const worseOf = (one: number, other: number): number =>
  byWeight.indexOf(one) > byWeight.indexOf(other) ? one : other

/** Severity of a CVSS score. */
export function severityOfScore(score: number): number {
  if (!(score > 0)) return score === 0 ? 5 : 0
  return score >= 9 ? 4 : score >= 7 ? 3 : score >= 4 ? 2 : 1
}

/** One entry of a scan report: a vulnerability in at most one package. */
export type ReportEntry = {
  id: string
  aliases?: readonly string[]
  summary?: unknown
  details?: unknown
  severity: number
  cvss?: readonly FoundScore[]
  fix: { state: 0 | 1 | 2 | 3; versions: readonly unknown[] }
  references?: readonly unknown[]
  locations?: readonly unknown[]
  package?: { purl: unknown; name: unknown; version: unknown }
  /** Id and source of the record, and its URL. */
  record: { source: unknown; url: unknown }
}

const most = { vulnerabilities: 50_000, texts: 4000, bytes: 16 * 2 ** 20 }
const mostOf = { aliases: 100, references: 50, locations: 50, packages: 1000, cvss: 30, versions: 50, records: 30 }

/** Joins the entries of each vulnerability. Throws Unreadable above the limits. */
export class Findings {
  readonly #byId = new Map<string, FoundVulnerability>()
  #size = 0

  add(entry: ReportEntry): void {
    const names = [entry.id, ...(entry.aliases ?? [])]
    for (const name of names) {
      if (!/^[\x21-\x7e]{1,128}$/.test(name)) throw new Unreadable('DAMAGED', 'a vulnerability has no valid ID')
    }
    const id = idOf(names)
    const one = this.#byId.get(id) ?? this.#begin(id)
    this.#into(
      one.aliases,
      names.filter((name) => name !== id),
      mostOf.aliases,
    )
    if (one.summary === '') one.summary = this.#text(entry.summary, most.texts)
    if (one.details === '') one.details = this.#text(entry.details, most.texts)
    one.severity = worseOf(one.severity, entry.severity)
    for (const score of entry.cvss ?? []) {
      const isThere = one.cvss.some(({ source, vector }) => source === score.source && vector === score.vector)
      if (!isThere && one.cvss.length < mostOf.cvss) one.cvss.push(score)
    }
    this.#fix(one, entry.fix)
    this.#into(one.references, (entry.references ?? []).filter(isUrl), mostOf.references)
    this.#into(one.locations, entry.locations ?? [], mostOf.locations)
    if (entry.package) this.#package(one, entry.package)
    const url = isUrl(entry.record.url) ? entry.record.url : ''
    const record = { source: this.#text(entry.record.source, 256), id: entry.id, url }
    const isKnown = one.records.some(({ source, id: known }) => source === record.source && known === record.id)
    if (!isKnown && one.records.length < mostOf.records) one.records.push(record)
    this.#spend(200)
  }

  all(): FoundVulnerability[] {
    const sorted = [...this.#byId.values()].sort((one, other) => (one.id < other.id ? -1 : 1))
    for (const one of sorted) {
      one.aliases.sort()
      one.packages.sort((a, b) => (a.purl === b.purl ? 0 : a.purl < b.purl ? -1 : 1))
    }
    return sorted
  }

  #begin(id: string): FoundVulnerability {
    if (this.#byId.size >= most.vulnerabilities) {
      throw new Unreadable('LIMIT_EXCEEDED', `the report has more than ${most.vulnerabilities} vulnerabilities`)
    }
    const one: FoundVulnerability = {
      ...{ id, aliases: [], summary: '', details: '', severity: 0, cvss: [], fix: { state: 0, versions: [] } },
      ...{ references: [], locations: [], packages: [], records: [] },
    }
    this.#byId.set(id, one)
    return one
  }

  #package(one: FoundVulnerability, { purl, name, version }: NonNullable<ReportEntry['package']>): void {
    const [called, of] = [this.#text(name, 512), this.#text(version, 512)]
    const url = this.#text(purl, 2048)
    const generic = `pkg:generic/${encodeURIComponent(called)}@${encodeURIComponent(of)}`
    const known = url.startsWith('pkg:') ? url : generic
    if (called === '' && known === generic) return
    if (one.packages.some((other) => other.purl === known)) return
    if (one.packages.length >= mostOf.packages) {
      throw new Unreadable('LIMIT_EXCEEDED', `a vulnerability is in more than ${mostOf.packages} packages`)
    }
    one.packages.push({ purl: known, name: called, version: of })
  }

  /** Merges states of a fix. If one package has a fix and another has none, the vulnerability is fixed. */
  #fix(one: FoundVulnerability, { state, versions }: ReportEntry['fix']): void {
    this.#into(one.fix.versions, versions, mostOf.versions)
    const weight = [fixes.unknown, fixes.wontFix, fixes.notFixed, fixes.fixed] as const
    if (weight.indexOf(state) > weight.indexOf(one.fix.state)) one.fix.state = state
  }

  #into(list: string[], values: readonly unknown[], limit: number): void {
    for (const value of values) {
      const text = this.#text(value, 2048)
      if (text !== '' && list.length < limit && !list.includes(text)) list.push(text)
    }
  }

  #text(value: unknown, limit: number): string {
    const text = textOf(value).slice(0, limit).replaceAll('\0', '').toWellFormed()
    this.#spend(text.length)
    return text
  }

  #spend(size: number): void {
    this.#size += size
    if (this.#size > most.bytes)
      throw new Unreadable('LIMIT_EXCEEDED', `the texts of the report have more than ${most.bytes} characters`)
  }
}

/**
 * Id of a vulnerability. If exactly one of the names is a CVE ID, that is the id. So entries of different sources become one
 * vulnerability.
 */
function idOf(names: readonly string[]): string {
  const [id] = names
  const cves = [...new Set(names.filter((name) => name.startsWith('CVE-')))]
  return id!.startsWith('CVE-') || cves.length !== 1 ? id! : cves[0]!
}

const isUrl = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 2048 && /^https?:\/\/[^\s\0]+$/.test(value)

/** Time in ISO 8601 in UTC with milliseconds. Empty if the value is no plausible time. */
export function timeOf(value: unknown): string {
  const time = Date.parse(textOf(value))
  if (!(time > 0 && time < Date.UTC(3000, 0))) return ''
  return new Date(time).toISOString()
}

const types: Readonly<Record<string, FoundScore['type']>> = { 2: 'CVSS_V2', 3: 'CVSS_V3', 4: 'CVSS_V4' }

/** Score with its vector. Undefined if the vector is no CVSS vector. */
export function scoreOf(source: unknown, version: string, vector: unknown, score: unknown): FoundScore | undefined {
  const type = types[(/^CVSS:(\d)/.exec(textOf(vector))?.[1] ?? version).slice(0, 1)]
  if (!type) return undefined
  const from = textOf(source).slice(0, 128).toWellFormed()
  const text = textOf(vector)
  const known = /^[\x20-\x7e]{0,512}$/.test(text) ? text : ''
  const isScore = typeof score === 'number' && score >= 0 && score <= 10
  if (!isScore && known === '') return undefined
  return { source: from, type, vector: known, ...(isScore ? { score } : {}) }
}

/** Fields of an object whose values are objects, with their names. */
export function entriesIn(value: unknown): [string, Json][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  return Object.entries(value).map(([name, one]) => [name, objectsIn([one])[0]!])
}
