import type { Call } from '#app.ts'
import type {
  Reference,
  Severity,
  VulnerabilityMetadata,
  VulnerabilityMetadataFilter,
  VulnerabilityMetadataList,
} from '#gen/pinfold/advisory/v1/security_advisory_pb.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { type Vulnerability, vulnerabilityFields } from './vulnerabilities.model.ts'
import * as service from './vulnerabilities.service.ts'

const rules = { fields: vulnerabilityFields, defaultOrder: 'id' }

export async function listVulnerabilityMetadata(
  call: Call,
  request: VulnerabilityMetadataFilter,
): Promise<VulnerabilityMetadataList> {
  const ids = [...(request.id === '' ? [] : [request.id]), ...request.ids]
  const listed = await service.listVulnerabilities(call, readList(call, request, rules, { ids }))
  return listResponse('pinfold.platform.advisory.VulnerabilityMetadataList', 'items', listed, toMessage, request)
}

function toMessage({ id, summary, details, references, severities }: Vulnerability): VulnerabilityMetadata {
  return {
    $typeName: 'pinfold.platform.advisory.VulnerabilityMetadata',
    id,
    summary,
    details,
    references: references.map(({ type, url }) => ({
      $typeName: 'pinfold.platform.advisory.Reference',
      type: type as Reference['type'],
      url,
    })),
    severity: severities.map(({ type, score }) => ({
      $typeName: 'pinfold.platform.advisory.Severity',
      type: type as Severity['type'],
      score,
    })),
  }
}
