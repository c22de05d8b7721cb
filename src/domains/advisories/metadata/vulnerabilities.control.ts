import type { Handlers } from '#app.ts'
import type {
  ImportedVulnerability,
  VulnerabilityControlService,
} from '#gen/pinfold/control/advisory/v1/vulnerabilities_pb.ts'
import { toIso } from '#lib/timestamp.ts'
import type { Vulnerability } from './vulnerabilities.model.ts'
import * as service from './vulnerabilities.service.ts'

export const vulnerabilityControl: Handlers<typeof VulnerabilityControlService> = {
  async importVulnerabilities(call, { vulnerabilities }) {
    const counts = await service.importVulnerabilities(call, vulnerabilities.map(fromMessage))
    return { $typeName: 'pinfold.control.advisory.v1.ImportVulnerabilitiesResponse', ...counts }
  },
}

function fromMessage(message: ImportedVulnerability): Vulnerability {
  const { id, aliases, summary, details, references, severities, publishTime, modifyTime } = message
  return {
    id,
    aliases,
    summary,
    details,
    references: references.map(({ type, url }) => ({ type, url })),
    severities: service.distinct(severities.map(({ type, score }) => ({ type, score }))),
    publishTime: publishTime ? toIso(publishTime) : '',
    modifyTime: modifyTime ? toIso(modifyTime) : '',
  }
}
