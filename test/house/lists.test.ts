// All lists under a `/v2/` path have the same request fields and the same form of answers, so one paginator can read them all.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type DescMessage, type DescMethod, getOption, hasOption, ScalarType } from '@bufbuild/protobuf'
import { services } from '#api/services.ts'
import { http } from '#gen/google/api/annotations_pb.ts'

const methods = services.flatMap(({ desc }) => desc.methods)
const nameOf = ({ parent, name }: DescMethod) => `${parent.typeName.replace('pinfold.', '')}/${name}`

/** The paths of a method that have the segment `v2`. */
function pathsOf(method: DescMethod): string[] {
  if (!hasOption(method, http)) return []
  const rule = getOption(method, http)
  return [rule, ...rule.additionalBindings].flatMap(({ pattern }) => {
    const path = pattern.case === 'custom' ? pattern.value.path : (pattern.value ?? '')
    return path.includes('/v2/') ? [path] : []
  })
}

const repeated = ({ output }: DescMethod): DescMessage[] =>
  output.fields.flatMap((field) => (field.fieldKind === 'list' && field.listKind === 'message' ? [field.message] : []))

/** Methods whose answer contains several messages but is no list: it is one document, or the result of one request. */
const noLists: Record<string, string> = {
  'platform.iam.v2.RoleBindingsService/BatchCreateRoleBindings': 'what the request has made',
  'platform.iam.v2.ExternalGroupRoleMappingsService/BatchDeleteExternalGroupRoleMappings': 'what it has deleted',
  'control.quotas.v1.QuotasService/GetQuotas': 'the few quotas of an organization',
  'control.registry.v1.ViewsService/ResolveTag': 'why newer assignments were passed over',
  'control.registry.v1.DigestsService/GetDigestPulls': 'the last pulls of one manifest',
  'platform.vulnerabilities.v2.AdvisoriesService/GetAdvisory': 'one advisory with its events',
  'control.scanning.v1.FindingsService/GetImageFindings': 'the report of one image',
  'control.scanning.v1.FindingsService/ExportImageFindings': 'a document about one image',
  'control.summaries.v1.SummariesService/GetImageSummaries': 'one summary for each requested image',
  'control.summaries.v1.SummariesService/GetImageLayers': 'the layers of one image',
  'control.summaries.v1.SummariesService/GetImageOverview': 'one overview with its five worst images',
  'control.summaries.v1.SummariesService/GetTagUpdates': 'the last updates, at most 50',
  'control.summaries.v1.SummariesService/GetDryRunOverview': 'one overview, which looks at 50 images',
  'control.summaries.v1.SummariesService/GetScopeSummaries': 'one summary for each requested uid',
  'control.scanning.v1.ScanReportsService/ScanImage': 'what the request has queued',
  'control.scanning.v1.ScannedImagesService/CompareImages': 'one comparison',
  'control.scanning.v1.GatesService/PreviewGate': 'one trial, which checks at most 200 images',
  'control.scanning.v1.GatesService/PreviewGateSeverities': 'one step of a trial, which looks at 50 images',
  'platform.libraries.v2.ArtifactsService/GetArtifactCount': 'one number for each ecosystem',
  'control.events.v1.AuditService/GetAuditEntry': 'one entry with its sentence',
  'control.events.v1.DeliveriesService/SendTestEvent': 'one delivery with its attempts',
  'control.events.v1.DeliveriesService/GetDelivery': 'one delivery with its attempts',
  'control.events.v1.DeliveriesService/Redeliver': 'what the request has queued',
}

const answering = methods.filter((method) => pathsOf(method).length > 0 && repeated(method).length > 0)
const lists = answering.filter((method) => !(nameOf(method) in noLists))

/** Kinds of rows that never change. */
const unchanging = ['AuditEntry', 'DeletedRepo', 'VexStatement']

test('each answer with several messages is a list, or has an exception with a reason', () => {
  const known = answering.map(nameOf)
  assert.deepEqual(
    Object.keys(noLists).filter((name) => !known.includes(name)),
    [],
  )
  assert.ok(lists.length > 35)
})

test('each list has the paging fields of version 2, with their types', () => {
  const wanted = {
    input: {
      page_size: ScalarType.INT32,
      page_token: ScalarType.STRING,
      order_by: ScalarType.STRING,
      skip: ScalarType.INT32,
    },
    output: { next_page_token: ScalarType.STRING, total_count: ScalarType.INT64, skipped: ScalarType.INT32 },
  }
  const missing = lists.flatMap((method) =>
    (['input', 'output'] as const).flatMap((side) =>
      Object.entries(wanted[side]).flatMap(([name, type]) => {
        const field = method[side].fields.find((one) => one.name === name)
        return field?.fieldKind === 'scalar' && field.scalar === type ? [] : [`${nameOf(method)}: ${name}`]
      }),
    ),
  )
  assert.deepEqual(missing, [])
})

type Parameter = { name: string; description?: string }
type OpenApi = { paths: Record<string, Record<string, { parameters?: Parameter[]; operationId: string }>> }

test('every list names the fields for order_by', () => {
  const file = new URL('../../gen/openapi.json', import.meta.url)
  const { paths } = JSON.parse(readFileSync(file, 'utf8')) as OpenApi
  const operations = Object.entries(paths).filter(([path]) => path.includes('/v2/'))
  const orders = operations.flatMap(([path, byVerb]) =>
    (byVerb.get?.parameters ?? []).filter(({ name }) => /^order_?by$/i.test(name)).map((one) => ({ path, ...one })),
  )
  assert.ok(orders.length >= lists.length, `${orders.length} of ${lists.length}`)
  const silent = orders.filter(({ path, description = '' }) => {
    // A search has one order: the best matches come first.
    return path !== '/registry/v2/search' && !/`[a-z_]+`.*(?:asc|desc)/s.test(description)
  })
  assert.deepEqual(
    silent.map(({ path }) => path),
    [],
  )
})

test('every listed resource has a Get method and an update time', () => {
  const gets = methods.filter((method) => method.name.startsWith('Get') && pathsOf(method).length > 0)
  const lacking = lists.flatMap((method) => {
    // For resources of a compatible API, the other product's contract decides this.
    if (nameOf(method).startsWith('platform.')) return []
    return repeated(method).flatMap((item) => {
      if (!item.fields.some(({ name }) => name === 'uid')) return []
      const isRead = gets.some(({ output }) => output === item)
      const isDated = unchanging.includes(item.name) || item.fields.some(({ name }) => name === 'update_time')
      return [...(isRead ? [] : [`${item.name}: no Get`]), ...(isDated ? [] : [`${item.name}: no update_time`])]
    })
  })
  assert.deepEqual([...new Set(lacking)], [])
})
