import type { Outgoing } from '#lib/net/outgoing.ts'
import type { Signal } from '#lib/signal.ts'
import type { Memory } from '#lib/turns/memory.ts'
import type { ReadTurns } from '#lib/turns/read-turns.ts'

/** Caches, signals and clients of this domain, for as long as the process runs. */
export type ScanningParts = {
  /**
   * `reported`: a report of another scanner waits to be read. `scans`: there is an image to have scanned. `reading`: bytes of reports that are held in memory for answers.
   * `turns`: whose report is read next.
   */
  scanning: { reported: Signal; scans: Signal; reading: Memory; turns: ReadTurns }
  /** The same for the sources of vulnerabilities, which the settings name. */
  toSources: Outgoing
  /** The same for the scanners that the operator has set up. */
  toScanners: Outgoing
}
