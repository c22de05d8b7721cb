import type { Job } from '#job.ts'
import { askScanners as ask } from './ask-scanners.service.ts'

/** Background job that sends queued images to the operator's scanners and stores their reports. */
export const askScanners: Job = {
  name: 'scanners.ask',
  everyMs: 2_000,
  runsOn: 'one node',
  wake: ({ scanning }) => scanning.scans,
  run: (app, lease) => ask(app, lease),
}
