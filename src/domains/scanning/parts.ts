import type { Outgoing } from '#lib/net/outgoing.ts'
import type { Memory } from '#lib/scheduling/memory.ts'
import type { ReadTurns } from '#lib/scheduling/read-turns.ts'
import type { Signal } from '#lib/signal.ts'

/** Caches, signals and clients of this domain, for as long as the process runs. */
export type ScanningParts = {
  /**
   * `reported`: a report of another scanner waits to be read. `scans`: an image waits to be scanned. `reading`: bytes of reports in
   * memory for answers. `turns`: organizations in the order in which their reports are read.
   */
  scanning: { reported: Signal; scans: Signal; reading: Memory; turns: ReadTurns }
  /** Client for the vulnerability data sources that the settings name. */
  toSources: Outgoing
  /** Client for the scanners that the operator has set up. */
  toScanners: Outgoing
}
