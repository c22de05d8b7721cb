import type { Job } from '#job.ts'
import { noteChanges } from './changes.service.ts'
import { emitChanges, emitResolved } from './emit-changes.service.ts'

/** Background job that emits events for vulnerabilities found and resolved in tagged images. */
export const emitVulnerabilityEvents: Job = {
  name: 'vulnerabilities.tell',
  everyMs: 2000,
  runsOn: 'one node',
  async run(app, lease) {
    const packages = await noteChanges(app, lease)
    return { packages, events: (await emitChanges(app, lease)) + (await emitResolved(app, lease)) }
  },
}
