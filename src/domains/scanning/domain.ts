import type { Service } from '#app.ts'
import { FindingsService } from '#gen/pinfold/control/scanning/v1/findings_pb.ts'
import { GatesService } from '#gen/pinfold/control/scanning/v1/gates_pb.ts'
import { ScannedImagesService } from '#gen/pinfold/control/scanning/v1/images_pb.ts'
import { PolicyChecksService } from '#gen/pinfold/control/scanning/v1/policy_checks_pb.ts'
import { RiskAcceptancesService } from '#gen/pinfold/control/scanning/v1/risks_pb.ts'
import { ScanReportsService } from '#gen/pinfold/control/scanning/v1/scan_reports_pb.ts'
import { ScannersService } from '#gen/pinfold/control/scanning/v1/scanners_pb.ts'
import { VexSignersService } from '#gen/pinfold/control/scanning/v1/signers_pb.ts'
import { VulnerabilitySourcesService } from '#gen/pinfold/control/scanning/v1/sources_pb.ts'
import { Vulnerabilities } from '#gen/pinfold/registry/v1/vulnerabilities_pb.ts'
import type { EventBody } from '#lib/events/event-body.ts'
import { vulnerabilityEvents } from './changes/changes.control.ts'
import { gateEvents, gates } from './gates/gates.control.ts'
import { policyChecks } from './gates/policy-checks.control.ts'
import { scannedImages } from './images/images.control.ts'
import { scanReports } from './outside/scan-reports.control.ts'
import { findings } from './reports/findings.control.ts'
import { vulnReports } from './reports/vuln-reports.v1.ts'
import { riskAcceptances, riskEvents } from './risks/risks.control.ts'
import { scanners } from './scanners/scanners.control.ts'
import { signerEvents, vexSigners } from './signers/signers.control.ts'
import { vulnerabilitySources } from './sources/sources.control.ts'

export const services: readonly Service[] = [
  { desc: Vulnerabilities, handlers: vulnReports },
  { desc: FindingsService, handlers: findings },
  { desc: ScanReportsService, handlers: scanReports },
  { desc: ScannersService, handlers: scanners },
  { desc: ScannedImagesService, handlers: scannedImages },
  { desc: RiskAcceptancesService, handlers: riskAcceptances },
  { desc: VexSignersService, handlers: vexSigners },
  { desc: GatesService, handlers: gates },
  { desc: PolicyChecksService, handlers: policyChecks },
  { desc: VulnerabilitySourcesService, handlers: vulnerabilitySources },
]

export const eventBodies: readonly EventBody[] = [...riskEvents, ...signerEvents, ...gateEvents, ...vulnerabilityEvents]
