// Reader of OSV records, https://ossf.github.io/osv-schema.

import type {
  AffectedPackage,
  RecordSeverity,
  SeverityLevel,
  SourceRecord,
} from '#domains/scanning/records/records.model.ts'
import { decodePercent } from '#lib/net/percent-encoding.ts'
import { goNamesOf } from '#versions/go-names.ts'
import { compareInstalled, schemeOf } from '#versions/order.ts'
import { projectName } from '#versions/pep503.ts'
import { inRanges, type RangeEvent, type VersionRange } from '#versions/ranges.ts'
import { isModular } from '#versions/rpm.ts'
import { levelOf, severityOf } from './severities.ts'
import { type Json, lineOf, listAt, objectAt, parseJson, requiredAt, textAt, textsAt, timeAt } from './values.ts'

/** Reads one record. Throws WrongRecord if the record is invalid. */
export function readOsv(text: string): SourceRecord {
  return recordOf(objectAt(parseJson(text), 'record'))
}

const maxReferences = 200
/** Limit on the version comparisons for one record. Valid records have some hundred versions and a few ranges. */
const maxComparisons = 1_000_000

export function recordOf(record: Json): SourceRecord {
  const id = requiredAt(record.id, 'id')
  const given = listAt(record.affected, 'affected').map((one, i) => objectAt(one, `affected[${i}]`))
  const summary = textAt(record.summary, 'summary') || textAt(record.details, 'details')
  return {
    id,
    aliases: textsAt(record.aliases, 'aliases').filter((one) => one !== id),
    upstream: upstreamOf(record, id),
    summary: lineOf(summary),
    publishTime: timeAt(record.published, 'published'),
    modifyTime: timeAt(record.modified, 'modified'),
    withdrawTime: timeAt(record.withdrawn, 'withdrawn'),
    severities: distinct([
      ...scoresOf(record.severity, 'severity'),
      ...given.flatMap((one, i) => scoresOf(one.severity, `affected[${i}].severity`)),
    ]),
    references: referencesOf(record.references),
    affected: given.flatMap((one, i) => affectedOf(one, `affected[${i}]`, record)),
  }
}

/** Upstream IDs of a record. Older records of Chainguard have no `upstream` field, and name their CVE ID in `related`. */
function upstreamOf(record: Json, id: string): string[] {
  const upstream = textsAt(record.upstream, 'upstream')
  if (upstream.length > 0 || !id.startsWith('CGA-')) return upstream
  return textsAt(record.related, 'related').filter((one) => /^(?:CVE|GHSA)-/.test(one))
}

const types = ['CVSS_V2', 'CVSS_V3', 'CVSS_V4'] as const

function scoresOf(value: unknown, path: string): RecordSeverity[] {
  return listAt(value, path).flatMap((one, i) => {
    const { type, score, source } = objectAt(one, `${path}[${i}]`)
    const known = types.find((word) => word === type)
    if (!known) return []
    return [severityOf(textAt(source, `${path}[${i}].source`), known, textAt(score, `${path}[${i}].score`))]
  })
}

function distinct(severities: readonly RecordSeverity[]): RecordSeverity[] {
  return [...new Map(severities.map((one) => [`${one.source} ${one.type} ${one.vector}`, one])).values()]
}

/** Types of references, the most informative first. */
const bestReferences = ['ADVISORY', 'FIX', 'REPORT']

function referencesOf(value: unknown): string[] {
  const found = listAt(value, 'references').map((one, i) => {
    const { type, url } = objectAt(one, `references[${i}]`)
    const rank = bestReferences.indexOf(textAt(type, `references[${i}].type`))
    return { url: textAt(url, `references[${i}].url`), rank: rank === -1 ? bestReferences.length : rank }
  })
  const urls = found.filter(({ url }) => /^https?:\/\/\S+$/.test(url) && url.length <= 2048)
  urls.sort((a, b) => a.rank - b.rank)
  return [...new Set(urls.map(({ url }) => url))].slice(0, maxReferences)
}

/** Reads one entry of `affected`. Returns an empty list if the entry has no package, or only versions by commit. */
function affectedOf(one: Json, path: string, record: Json): AffectedPackage[] {
  if (one.package === undefined || one.package === null) return []
  const named = objectAt(one.package, `${path}.package`)
  const ecosystem = withoutRepository(requiredAt(named.ecosystem, `${path}.package.ecosystem`))
  const name = requiredAt(named.name, `${path}.package.name`)
  const ranges = withKnownEnd(rangesOf(one.ranges, `${path}.ranges`), one.database_specific)
  const listed = textsAt(one.versions, `${path}.versions`)
  const versions = ranges.length > 0 ? versionsOutside(ecosystem, listed, ranges) : listed
  if (ranges.length === 0 && versions.length === 0) return []
  const urgency = textAt(
    objectAt(one.ecosystem_specific ?? {}, `${path}.ecosystem_specific`).urgency,
    `${path}.urgency`,
  )
  return namesIn(ecosystem, name).map((name) => ({
    ecosystem,
    name,
    ranges,
    versions,
    state: urgency === 'end-of-life' ? 'wont_fix' : 'affected',
    severity: levelFor(one, path, record, urgency),
    qualifiers: { ...(urgency === '' ? {} : { urgency }), ...streamOf(named, ranges, record) },
  }))
}

/**
 * Ecosystem without a repository. Maven records can name the repository of the package, such as
 * `Maven:https://repository.example/maven2`.
 */
const withoutRepository = (ecosystem: string): string => ecosystem.replace(/^([^:]+):https?:\/\/.*$/s, '$1')

function namesIn(ecosystem: string, name: string): string[] {
  if (ecosystem === 'Go') return goNamesOf(name)
  return [ecosystem === 'PyPI' ? projectName(name) : name]
}

/**
 * Adds the end of a range that GitHub writes into an extra field, such as `<= 29.0`, if there is no fix. The field is ignored if
 * the range itself has an end. If the range ends before a version without a fix, that version becomes its limit.
 */
function withKnownEnd(ranges: VersionRange[], specific: unknown): VersionRange[] {
  const { last_known_affected_version_range: text } = (specific ?? {}) as Json
  const [, operator, version] = typeof text === 'string' ? (/(<=?)\s*([^\s<>=,]{1,256})\s*$/.exec(text) ?? []) : []
  const [range] = ranges
  if (version === undefined || !range || ranges.length > 1) return ranges
  if (range.events.some((event) => !('introduced' in event)) || range.events.length > 1) return ranges
  const end: RangeEvent = operator === '<=' ? { lastAffected: version } : { limit: version }
  return [{ ...range, events: [...range.events, end] }]
}

/** Module streams that a fix is for. Red Hat, AlmaLinux and Rocky Linux name the streams in the first line of the record. */
function streamOf(named: Json, ranges: readonly VersionRange[], record: Json): { stream?: string } {
  if (schemeOf(String(named.ecosystem)) !== 'rpm') return {}
  const events = ranges.flatMap((range) => range.events)
  if (!events.some((event) => 'fixed' in event && isModular(event.fixed))) return {}
  const [, inUrl] = /[?&]rpmmod=([^&#]{1,256})/.exec(textAt(named.purl, 'purl')) ?? []
  if (inUrl === undefined) return { stream: streamsIn(textAt(record.summary, 'summary')) }
  const [module, stream] = decodePercent(inUrl).split(':')
  return { stream: module && stream ? `${module}:${stream}` : '' }
}

const maxStreams = 20

/**
 * All module streams that the line names, separated by spaces. If a record is about two modules, it does not state which packages
 * belong to which module.
 */
function streamsIn(line: string): string {
  const found = [...` ${line} `.matchAll(/ ([A-Za-z0-9_.+-]{1,100}:[A-Za-z0-9_.+-]{1,100})(?=[ ,])/g)]
  const streams = [...new Set(found.map(([, stream]) => stream!))]
  return streams.length > maxStreams ? '' : streams.join(' ')
}

const distributionSchemes: ReadonlySet<string> = new Set(['apk', 'deb', 'rpm'])

/**
 * Listed versions outside of the ranges. Listed versions inside the ranges are redundant. The others are prereleases before the
 * first version, and texts that are no versions. For distributions, all listed versions follow from the ranges.
 */
function versionsOutside(ecosystem: string, listed: readonly string[], ranges: readonly VersionRange[]): string[] {
  const scheme = schemeOf(ecosystem)
  const events = ranges.reduce((sum, range) => sum + range.events.length, 0)
  if (!scheme || distributionSchemes.has(scheme) || listed.length * events > maxComparisons) return []
  const order = (one: string, other: string) => compareInstalled(scheme, one, other)
  return listed.filter((version) => inRanges(version, ranges, order) !== 'yes')
}

/** Severity that the source states for the package, or else for the record. Ubuntu states the severity among the scores. */
function levelFor(one: Json, path: string, record: Json, urgency: string): SeverityLevel | '' {
  const scored = [one, record].flatMap((of) => listAt(of.severity, `${path}.severity`))
  const ubuntu = scored.map((score) => objectAt(score, `${path}.severity`)).find(({ type }) => type === 'Ubuntu')
  const objects = [one.ecosystem_specific, one.database_specific, record.database_specific]
  const words = objects.map((object) =>
    typeof object === 'object' && object !== null ? (object as Json).severity : '',
  )
  for (const word of [ubuntu?.score, urgency, ...words]) {
    const level = levelOf(word)
    if (level !== '') return level
  }
  return ''
}

function rangesOf(value: unknown, path: string): VersionRange[] {
  return listAt(value, path).flatMap((one, i): VersionRange[] => {
    const { type, events } = objectAt(one, `${path}[${i}]`)
    if (type !== 'ECOSYSTEM' && type !== 'SEMVER') return []
    const read = listAt(events, `${path}[${i}].events`).map((event, j) => {
      return eventOf(objectAt(event, `${path}[${i}].events[${j}]`), `${path}[${i}].events[${j}]`)
    })
    const found = read.filter((event) => event !== undefined)
    return found.length === 0 ? [] : [{ type, events: found }]
  })
}

function eventOf({ introduced, fixed, last_affected: last, limit }: Json, path: string): RangeEvent | undefined {
  if (introduced !== undefined) return { introduced: textAt(introduced, path) }
  if (fixed !== undefined) return { fixed: textAt(fixed, path) }
  if (last !== undefined) return { lastAffected: textAt(last, path) }
  // The limit `*` means that there is no limit.
  return limit === undefined || limit === '*' ? undefined : { limit: textAt(limit, path) }
}
