import type { Duty } from '#duty.ts'
import { askScanners as ask } from './ask-scanners.service.ts'

/** Has the scanners that the operator has set up look at images, and takes in what they report. */
export const askScanners: Duty = {
  name: 'scanners.ask',
  everyMs: 2_000,
  runsOn: 'one node',
  wake: ({ scanning }) => scanning.scans,
  run: (app, lease) => ask(app, lease),
}
