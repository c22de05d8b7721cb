import type { Ground } from '#app.ts'
import { createOutgoing } from '#lib/net/outgoing.ts'
import { privateAddresses } from '#lib/net/private-addresses.ts'
import { createReadScheduler, reportTurnLimits } from '#lib/scheduling/read-scheduler.ts'
import { createSignal } from '#lib/signal.ts'
import type { ScanningParts } from './parts.ts'
import { createReportMemory } from './scan-reports/report-memory.service.ts'

export function openScanning({ config, db, monotonic }: Ground): ScanningParts {
  const scans = createSignal()
  // A running job also processes scan jobs that are queued in the meantime.
  db.onCommit((changes) => {
    if (changes.has('insert scan_jobs')) scans.notify()
  })
  return {
    scanning: {
      ...{ reported: createSignal(), scans },
      ...{ reading: createReportMemory(), turns: createReadScheduler(monotonic, reportTurnLimits) },
    },
    // HTTP is allowed only for mirrors on this machine, whose traffic others cannot read.
    toSources: createOutgoing({
      allowed: privateAddresses(config.vulnerabilityPrivate),
      allowHttp: /^http:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])[:/]/.test(config.vulnerabilityMirror),
    }),
    toScanners: createOutgoing({
      allowed: privateAddresses(config.scannersPrivate),
      allowHttp: config.allowInsecureScanners,
    }),
  }
}
