import type { Handlers } from '#app.ts'
import type {
  AffectedPackage as AffectedMessage,
  SourceRecord as RecordMessage,
  SourceRun,
  VulnerabilitySourcesService,
} from '#gen/pinfold/control/scanning/v1/sources_pb.ts'
import { invalid } from '#lib/errors.ts'
import { type Instant, timestamp, toIso } from '#lib/timestamp.ts'
import type { AffectedPackage, Rank, SourceRecord } from '../records/records.model.ts'
import * as service from './sources.service.ts'

type RangeEvent = AffectedPackage['ranges'][number]['events'][number]

export const vulnerabilitySources: Handlers<typeof VulnerabilitySourcesService> = {
  async listVulnerabilitySources(call) {
    const sources = await service.listSources(call)
    return {
      $typeName: 'pinfold.control.scanning.v1.ListVulnerabilitySourcesResponse',
      sources: sources.map(({ name, url, licence, ecosystems, fingerprint, error, records, ...times }) => ({
        $typeName: 'pinfold.control.scanning.v1.VulnerabilitySource',
        ...{ name, url, licence, ecosystems, fingerprint, error, records: BigInt(records) },
        ...(times.buildTime === '' ? {} : { buildTime: timestamp(times.buildTime) }),
        ...(times.fetchTime === '' ? {} : { fetchTime: timestamp(times.fetchTime) }),
        ...(times.tryTime === '' ? {} : { tryTime: timestamp(times.tryTime) }),
      })),
    }
  },

  async beginVulnerabilitySource(call, { source }) {
    if (!source) throw invalid({ field: 'source', description: 'is required' })
    const { name, url, licence, ecosystems } = source
    const { generation } = await service.beginSource(call, { name, url, licence, ecosystems })
    return {
      $typeName: 'pinfold.control.scanning.v1.BeginVulnerabilitySourceResponse',
      run: { $typeName: 'pinfold.control.scanning.v1.SourceRun', name, generation: BigInt(generation) },
    }
  },

  async putVulnerabilityRecords(call, { run, records }) {
    const counts = await service.putRecords(call, runOf(run), records.map(fromMessage))
    return { $typeName: 'pinfold.control.scanning.v1.PutVulnerabilityRecordsResponse', ...counts }
  },

  async putVulnerabilityRanks(call, { run, ranks }) {
    const given = ranks.map(({ cve, exploited, likelihood }): Rank => {
      const { addDate = '', dueDate = '', ransomware = false } = exploited ?? {}
      const { epss = 0, percentile = 0 } = likelihood ?? {}
      return {
        cve,
        ...(exploited && { exploited: { addDate, dueDate, ransomware } }),
        ...(likelihood && { likelihood: { epss, percentile } }),
      }
    })
    const counts = await service.putRanks(call, runOf(run), given)
    return { $typeName: 'pinfold.control.scanning.v1.PutVulnerabilityRanksResponse', ...counts }
  },

  async finishVulnerabilitySource(call, { run, fingerprint, buildTime, complete, error }) {
    const end = { fingerprint, buildTime: isoOf(buildTime), complete, error }
    const { withdrawn } = await service.finishSource(call, runOf(run), end)
    return { $typeName: 'pinfold.control.scanning.v1.FinishVulnerabilitySourceResponse', withdrawn }
  },
}

function runOf(run: SourceRun | undefined): service.RunName {
  if (!run) throw invalid({ field: 'run', description: 'is required' })
  return { name: run.name, generation: Number(run.generation) }
}

const isoOf = (time: Instant | undefined): string => (time ? toIso(time) : '')

/** The words are checked by the service. */
function fromMessage(record: RecordMessage): SourceRecord {
  const { id, aliases, upstream, summary, references, severities, affected } = record
  return {
    ...{ id, aliases, upstream, summary, references },
    publishTime: isoOf(record.publishTime),
    modifyTime: isoOf(record.modifyTime),
    withdrawTime: isoOf(record.withdrawTime),
    severities: severities.map(({ source, type, vector, score }) => {
      const one = { source, type: type as SourceRecord['severities'][number]['type'], vector }
      return score === undefined ? one : { ...one, score }
    }),
    affected: affected.map(affectedOf),
  }
}

function affectedOf({
  ecosystem,
  name,
  ranges,
  versions,
  state,
  severity,
  arch,
  urgency,
}: AffectedMessage): AffectedPackage {
  return {
    ...{ ecosystem, name, versions },
    ranges: ranges.map(({ type, events }) => ({
      type: type as AffectedPackage['ranges'][number]['type'],
      events: events.flatMap(({ event }): RangeEvent[] => {
        return event.case === undefined ? [] : [{ [event.case]: event.value } as RangeEvent]
      }),
    })),
    state: state as AffectedPackage['state'],
    severity: severity as AffectedPackage['severity'],
    qualifiers: { ...(arch === '' ? {} : { arch }), ...(urgency === '' ? {} : { urgency }) },
  }
}
