import type { Domain } from '#domain.ts'
import { FindingsService } from '#gen/pinfold/control/scanning/v1/findings_pb.ts'
import { ScannedImagesService } from '#gen/pinfold/control/scanning/v1/images_pb.ts'
import { RiskAcceptancesService } from '#gen/pinfold/control/scanning/v1/risks_pb.ts'
import { ScanReportsService } from '#gen/pinfold/control/scanning/v1/scan_reports_pb.ts'
import { ScannersService } from '#gen/pinfold/control/scanning/v1/scanners_pb.ts'
import { VexSignersService } from '#gen/pinfold/control/scanning/v1/signers_pb.ts'
import { VulnerabilitySourcesService } from '#gen/pinfold/control/scanning/v1/sources_pb.ts'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { Vulnerabilities } from '#gen/pinfold/registry/v1/vulnerabilities_pb.ts'
import { vulnerabilityEvents } from './changes/changes.control.ts'
import { emitVulnerabilityEvents } from './changes/changes.job.ts'
import { sweepScanning } from './cleanup/cleanup.job.ts'
import { findingsExports } from './exports/exports.control.ts'
import { matchPackages } from './findings/match.job.ts'
import { scannedImages } from './images/images.control.ts'
import { openScanning } from './open-parts.ts'
import { findings } from './reports/findings.control.ts'
import { vulnReportV1 } from './reports/vuln-report.v1.ts'
import { vulnReports } from './reports/vuln-reports.v1.ts'
import { resources } from './resources.ts'
import { riskAcceptances, riskEvents } from './risks/risks.control.ts'
import { expireRisksJob } from './risks/risks.job.ts'
import { scanReports } from './scan-reports/scan-reports.control.ts'
import { askScanners } from './scanners/ask-scanners.job.ts'
import { scanners, scanRequests } from './scanners/scanners.control.ts'
import { scanningHooks } from './scanning.hooks.ts'
import { readReports } from './signers/read-reports.job.ts'
import { signerEvents, vexSigners } from './signers/signers.control.ts'
import { expireSignersJob } from './signers/signers.job.ts'
import { vulnerabilitySources } from './sources/sources.control.ts'
import { syncSources } from './sources/sync.job.ts'

export const scanning: Domain = {
  parts: openScanning,
  services: [
    { desc: Vulnerabilities, handlers: vulnReports },
    { desc: FindingsService, handlers: { ...findings, ...findingsExports } },
    { desc: ScanReportsService, handlers: { ...scanReports, ...scanRequests } },
    { desc: ScannersService, handlers: scanners },
    { desc: ScannedImagesService, handlers: scannedImages },
    { desc: RiskAcceptancesService, handlers: riskAcceptances },
    { desc: VexSignersService, handlers: vexSigners },
    { desc: VulnerabilitySourcesService, handlers: vulnerabilitySources },
    { desc: Registry, handlers: vulnReportV1 },
  ],
  eventBodies: [...riskEvents, ...signerEvents, ...vulnerabilityEvents],
  resources,
  hooks: scanningHooks,
  jobs: [
    matchPackages,
    readReports,
    askScanners,
    sweepScanning,
    emitVulnerabilityEvents,
    expireRisksJob,
    expireSignersJob,
    syncSources,
  ],
}
