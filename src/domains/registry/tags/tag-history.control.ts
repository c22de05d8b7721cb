import type { Call, Handlers } from '#app.ts'
import {
  type ImportedTag,
  type ListTagHistoryRequest,
  type ListTagHistoryResponse,
  type TagHistoryRecord,
  TagHistoryRecord_Event,
  TagHistoryRecord_Source,
  type TagHistoryService,
  type ToldTagHistoryRecord,
} from '#gen/pinfold/control/registry/v1/tag_history_pb.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { readPage } from '#lib/lists/paging.ts'
import { type Instant, timestamp, toIso } from '#lib/timestamp.ts'
import { historyFields } from './tag-history.model.ts'
import * as service from './tag-history.service.ts'
import { listReported, type ReportedRecord } from './tag-history.service.ts'
import { importTagHistory } from './tag-imports.service.ts'

export const tagHistory: Handlers<typeof TagHistoryService> = {
  listTagHistory: (call, request) => pageOf(call, request, service.listRecords),
  listDeletedRepoTagHistory: (call, request) => pageOf(call, request, service.listRecordsOfDeleted),

  async listToldTagHistory(call, request) {
    const { page, filter } = readRequest(call, request, newestFirst)
    const listed = await listReported(call, request.repoUid, page, filter)
    const response = 'pinfold.control.registry.v1.ListToldTagHistoryResponse'
    return listResponse(response, 'records', listed, toldMessage, request)
  },

  async importTagHistory(call, { repoUid, tags }) {
    const counts = await importTagHistory(call, repoUid, tags.map(fromMessage))
    return { $typeName: 'pinfold.control.registry.v1.ImportTagHistoryResponse', ...counts }
  },
}

async function pageOf(
  call: Call,
  request: ListTagHistoryRequest,
  list: typeof service.listRecords,
): Promise<ListTagHistoryResponse> {
  const { page, filter } = readRequest(call, request)
  const listed = await list(call, request.repoUid, page, filter)
  return listResponse('pinfold.control.registry.v1.ListTagHistoryResponse', 'records', listed, toMessage, request)
}

const newestFirst = 'time desc'

function readRequest(call: Call, request: ListTagHistoryRequest, order?: string) {
  const { repoUid, tag, digest } = request
  const filter = { tag, digest, from: isoOf(request.startTime), before: isoOf(request.endTime) }
  // Without a tag, a list for a digest is ordered by tag, since it shows which tags pointed to the digest.
  const defaultOrder = order ?? (digest !== '' && tag === '' ? 'tag' : newestFirst)
  const page = readPage(call, request, { fields: historyFields, defaultOrder }, [repoUid, filter])
  return { page, filter }
}

const events = {
  created: TagHistoryRecord_Event.CREATED,
  moved: TagHistoryRecord_Event.MOVED,
  deleted: TagHistoryRecord_Event.DELETED,
}
const sources = {
  oci: TagHistoryRecord_Source.OCI,
  api: TagHistoryRecord_Source.API,
  import: TagHistoryRecord_Source.IMPORT,
  sync: TagHistoryRecord_Source.SYNC,
  upstream: TagHistoryRecord_Source.UPSTREAM,
}

function toMessage(record: service.NamedRecord): TagHistoryRecord {
  const { tag, digest, previousDigest, actor, actorName, time, endTime, checkedBefore, restoreReason } = record
  return {
    $typeName: 'pinfold.control.registry.v1.TagHistoryRecord',
    tag,
    time: timestamp(time),
    ...(endTime === '' ? {} : { endTime: timestamp(endTime) }),
    ...(checkedBefore === '' ? {} : { checkedBefore: timestamp(checkedBefore) }),
    event: events[record.event],
    digest,
    previousDigest,
    actor,
    actorName,
    source: sources[record.source],
    restoreReason,
  }
}

function toldMessage(record: ReportedRecord): ToldTagHistoryRecord {
  const { tag, digest, time, endTime, checkedBefore, upstream, path, origin, toldTime } = record
  return {
    $typeName: 'pinfold.control.registry.v1.ToldTagHistoryRecord',
    tag,
    time: timestamp(time),
    ...(endTime === '' ? {} : { endTime: timestamp(endTime) }),
    ...(checkedBefore === '' ? {} : { checkedBefore: timestamp(checkedBefore) }),
    event: events[record.event],
    digest,
    upstreamUid: upstream,
    path,
    url: origin,
    toldTime: timestamp(toldTime),
  }
}

function fromMessage({ name, deprecated, records }: ImportedTag) {
  return { name, deprecated, records: records.map(({ time, digest }) => ({ time: isoOf(time) ?? '', digest })) }
}

function isoOf(time: Instant | undefined): string | undefined {
  return time && toIso(time)
}
