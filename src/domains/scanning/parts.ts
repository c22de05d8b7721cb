import type { Outgoing } from '#lib/net/outgoing.ts'
import type { Memory } from '#lib/scheduling/memory.ts'
import type { ReadTurns } from '#lib/scheduling/read-turns.ts'
import type { Signal } from '#lib/signal.ts'

/** Caches, signals and clients of this domain, for as long as the process runs. */
export type ScanningParts = {
  /**
   * `reported`: a scan report is queued. `scans`: an image is queued for scanners. `reading`: memory for reports in answers.
   * `turns`: organizations in the order in which their reports are parsed.
   */
  scanning: { reported: Signal; scans: Signal; reading: Memory; turns: ReadTurns }
  /** Client for the data sources that the settings name. */
  toSources: Outgoing
  /** Client for the scanners that the operator has configured. */
  toScanners: Outgoing
}
