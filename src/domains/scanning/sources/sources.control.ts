import type { Handlers } from '#app.ts'
import {
  type AffectedPackage as AffectedMessage,
  BeginVulnerabilitySourceResponseSchema,
  ListVulnerabilitySourcesResponseSchema,
  type SourceRecord as RecordMessage,
  type SourceRun,
  type VulnerabilitySourcesService,
} from '#gen/pinfold/control/scanning/v1/sources_pb.ts'
import { contentOf, messageOf, required } from '#lib/contract/messages.ts'
import { type Instant, toIso } from '#lib/timestamp.ts'
import { duration } from '#lib/wire.ts'
import type { AffectedPackage, Rank, SourceRecord } from '../records/records.model.ts'
import * as service from './sources.service.ts'

const toSources = messageOf(ListVulnerabilitySourcesResponseSchema)
const toBegun = messageOf(BeginVulnerabilitySourceResponseSchema)

type RangeEvent = AffectedPackage['ranges'][number]['events'][number]

export const vulnerabilitySources: Handlers<typeof VulnerabilitySourcesService> = {
  async listVulnerabilitySources(call) {
    const { vulnerabilitySyncHours: hours } = call.app.config
    const syncInterval = hours > 0 ? duration(hours * 3_600_000) : undefined
    return toSources({ sources: await service.listSources(call), needed: await service.listNeeded(call), syncInterval })
  },

  async beginVulnerabilitySource(call, { source }) {
    const begun = contentOf(source, 'source', 'name', 'url', 'licence', 'ecosystems')
    const { generation } = await service.beginSource(call, begun)
    return toBegun({ run: { name: begun.name, generation } })
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
  const { name, generation } = required(run, 'run')
  return { name, generation: Number(generation) }
}

const isoOf = (time: Instant | undefined): string => (time ? toIso(time) : '')

/** The service validates the enum values. */
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
