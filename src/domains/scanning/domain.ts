import type { Service } from '#app.ts'
import { FindingsService } from '#gen/pinfold/control/scanning/v1/findings_pb.ts'
import { ScanReportsService } from '#gen/pinfold/control/scanning/v1/scan_reports_pb.ts'
import { VulnerabilitySourcesService } from '#gen/pinfold/control/scanning/v1/sources_pb.ts'
import { Vulnerabilities } from '#gen/pinfold/registry/v1/vulnerabilities_pb.ts'
import { scanReports } from './outside/scan-reports.control.ts'
import { findings } from './reports/findings.control.ts'
import { vulnReports } from './reports/vuln-reports.v1.ts'
import { vulnerabilitySources } from './sources/sources.control.ts'

export const services: readonly Service[] = [
  { desc: Vulnerabilities, handlers: vulnReports },
  { desc: FindingsService, handlers: findings },
  { desc: ScanReportsService, handlers: scanReports },
  { desc: VulnerabilitySourcesService, handlers: vulnerabilitySources },
]
