import type { Outgoing } from '#lib/net/outgoing.ts'
import type { Memory } from '#lib/scheduling/memory.ts'
import type { ReadScheduler } from '#lib/scheduling/read-scheduler.ts'
import type { Signal } from '#lib/signal.ts'

/** Caches, signals and clients of the scanning domain, which live as long as the process. */
export type ScanningParts = {
  /**
   * `reported`: signal that a scan report was queued. `scans`: signal that an image was queued for scanners. `reading`: memory
   * limit for the reports in answers. `turns`: organizations in the order in which their reports are parsed.
   */
  scanning: { reported: Signal; scans: Signal; reading: Memory; turns: ReadScheduler }
  /** Client for the data sources that the settings name. */
  toSources: Outgoing
  /** Client for the scanners that the operator has configured. */
  toScanners: Outgoing
}
