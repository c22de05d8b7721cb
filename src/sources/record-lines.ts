// Reads and writes a record as a line of a bundle. Another version of Pinfold may have written the line.
import {
  type AffectedPackage,
  type AffectedState,
  affectedStates,
  type RecordSeverity,
  type SeverityLevel,
  type SourceRecord,
  severityLevels,
} from '#domains/scanning/records/records.model.ts'
import type { RangeEvent, VersionRange } from '#versions/ranges.ts'
import { listAt, objectAt, parseJson, requiredAt, textAt, textsAt, timeAt, WrongRecord } from './values.ts'

/** Reads a record from a line. Throws WrongRecord if the line is invalid. The server checks the maximum lengths later. */
export function recordLine(text: string): SourceRecord {
  const given = objectAt(parseJson(text), 'record')
  return {
    id: requiredAt(given.id, 'id'),
    aliases: textsAt(given.aliases, 'aliases'),
    upstream: textsAt(given.upstream, 'upstream'),
    summary: textAt(given.summary, 'summary'),
    publishTime: timeAt(given.publishTime, 'publishTime'),
    modifyTime: timeAt(given.modifyTime, 'modifyTime'),
    withdrawTime: timeAt(given.withdrawTime, 'withdrawTime'),
    severities: listAt(given.severities, 'severities').map((one, i) => severityAt(one, `severities[${i}]`)),
    references: textsAt(given.references, 'references'),
    affected: listAt(given.affected, 'affected').map((one, i) => affectedAt(one, `affected[${i}]`)),
  }
}

function severityAt(value: unknown, path: string): RecordSeverity {
  const { source, type, vector, score } = objectAt(value, path)
  const one = {
    source: textAt(source, `${path}.source`),
    type: wordAt(type, `${path}.type`, { CVSS_V2: 2, CVSS_V3: 3, CVSS_V4: 4 }) as RecordSeverity['type'],
    vector: textAt(vector, `${path}.vector`),
  }
  if (score === undefined) return one
  if (typeof score !== 'number') throw new WrongRecord(`${path}.score must be a number`)
  return { ...one, score }
}

function affectedAt(value: unknown, path: string): AffectedPackage {
  const one = objectAt(value, path)
  const { arch, urgency, stream } = objectAt(one.qualifiers ?? {}, `${path}.qualifiers`)
  const [forArch, word] = [textAt(arch, `${path}.arch`), textAt(urgency, `${path}.urgency`)]
  const severity = textAt(one.severity, `${path}.severity`)
  return {
    ecosystem: requiredAt(one.ecosystem, `${path}.ecosystem`),
    name: requiredAt(one.name, `${path}.name`),
    ranges: listAt(one.ranges, `${path}.ranges`).map((range, i) => rangeAt(range, `${path}.ranges[${i}]`)),
    versions: textsAt(one.versions, `${path}.versions`),
    state: wordAt(one.state, `${path}.state`, affectedStates) as AffectedState,
    severity: severity === '' ? '' : (wordAt(severity, `${path}.severity`, severityLevels) as SeverityLevel),
    qualifiers: {
      ...(forArch === '' ? {} : { arch: forArch }),
      ...(word === '' ? {} : { urgency: word }),
      ...(stream === undefined ? {} : { stream: textAt(stream, `${path}.stream`) }),
    },
  }
}

const events = { introduced: 1, fixed: 2, lastAffected: 3, limit: 4 }

function rangeAt(value: unknown, path: string): VersionRange {
  const range = objectAt(value, path)
  return {
    type: wordAt(range.type, `${path}.type`, { ECOSYSTEM: 1, SEMVER: 2 }) as VersionRange['type'],
    events: listAt(range.events, `${path}.events`).map((one, i): RangeEvent => {
      const [[what, version] = [], ...more] = Object.entries(objectAt(one, `${path}.events[${i}]`))
      const word = wordAt(what, `${path}.events[${i}]`, events)
      if (more.length > 0) throw new WrongRecord(`${path}.events[${i}] must have exactly one member`)
      return { [word]: requiredAt(version, `${path}.events[${i}].${word}`) } as RangeEvent
    }),
  }
}

function wordAt(value: unknown, path: string, words: object): string {
  const text = textAt(value, path)
  if (!Object.hasOwn(words, text)) throw new WrongRecord(`${path} must be one of: ${Object.keys(words).join(', ')}`)
  return text
}
