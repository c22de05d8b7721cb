import type { Call } from '#app.ts'
import type {
  ListVulnerabilityMetadataRequest,
  ListVulnerabilityMetadataResponse,
  Reference,
  Severity,
  VulnerabilityMetadata,
} from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { type Vulnerability, vulnerabilityFields } from './vulnerabilities.model.ts'
import * as service from './vulnerabilities.service.ts'

const rules = { fields: vulnerabilityFields, defaultOrder: 'id' }

export async function listVulnerabilityMetadata(
  call: Call,
  request: ListVulnerabilityMetadataRequest,
): Promise<ListVulnerabilityMetadataResponse> {
  const ids = [...(request.id === '' ? [] : [request.id]), ...request.ids]
  const listed = await service.listVulnerabilities(call, readList(call, request, rules, { ids }))
  return listResponse(
    'pinfold.platform.advisory.v2.ListVulnerabilityMetadataResponse',
    'vulnerabilityMetadata',
    listed,
    toMessage,
    request,
  )
}

function toMessage({ id, summary, details, references, severities }: Vulnerability): VulnerabilityMetadata {
  return {
    $typeName: 'pinfold.platform.advisory.v2.VulnerabilityMetadata',
    id,
    summary,
    details,
    references: references.map(({ type, url }) => ({
      $typeName: 'pinfold.platform.advisory.v2.Reference',
      type: type as Reference['type'],
      url,
    })),
    severities: severities.map(({ type, score }) => ({
      $typeName: 'pinfold.platform.advisory.v2.Severity',
      type: type as Severity['type'],
      score,
    })),
  }
}
